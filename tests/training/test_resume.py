"""A run that was stopped goes on: to the bit, with the same settings only."""

import signal

import pytest
from runs import PressCtrlC, StopAt, assert_same_weights, broken_and_unbroken, records
from transformers import TrainerCallback

from hf_vat.errors import InputError


@pytest.mark.parametrize("step", [2, 4, 6, 8, 10, 15])
def test_c23_resume_is_bit_equal_to_the_unbroken_run(make_trainer, make_model, step):
    """4 steps an epoch: 2 is within joint, 4 at its end, 6 within compress, 8 at its end, 10 in learn, 15 in compress."""

    def make(**settings):
        return make_trainer(model=make_model("vat", hidden_dropout_prob=0.3), **settings)

    resumed, unbroken = broken_and_unbroken(make, StopAt(step))
    assert_same_weights(unbroken.model, resumed.model)
    strip = ("epoch", "step", "train_runtime", "train_samples_per_second", "train_steps_per_second", "train_loss")
    unbroken_log, resumed_log = (
        [{k: v for k, v in record.items() if k not in strip} for record in records(trainer)]
        for trainer in (unbroken, resumed)
    )
    assert resumed_log == unbroken_log
    assert resumed.model.config.predict_from == unbroken.model.config.predict_from


def test_c23_resume_with_other_settings_says_which(make_trainer):
    make_trainer(folder="run", callbacks=[StopAt(2)]).train()
    with pytest.raises(InputError, match="learn_epochs was 1 and is 2"):
        make_trainer(folder="run", learn_epochs=2).train(resume_from_checkpoint=True)
    with pytest.raises(InputError, match="bottleneck was 'gaussian' and is 'none'"):
        make_trainer("att", folder="run").train(resume_from_checkpoint=True)
    with pytest.raises(InputError, match="no checkpoint"):
        make_trainer(folder="empty").train(resume_from_checkpoint=True)


class Anneal(TrainerCallback):
    """Halves β after each epoch, which no schedule of ours knows of."""

    def on_epoch_end(self, args, state, control, model=None, **kwargs):
        model.config.beta /= 2


@pytest.mark.parametrize("step", [6, 10])
def test_f13_a_beta_that_a_callback_moved_is_taken_up_again(make_trainer, make_model, step):
    def make(callbacks=(), **settings):
        model = make_model("vat", beta=0.8)
        return make_trainer(model=model, callbacks=[Anneal(), *callbacks], num_train_epochs=3, **settings)

    resumed, unbroken = broken_and_unbroken(make, StopAt(step))
    assert unbroken.model.config.beta == resumed.model.config.beta == 0.1
    assert_same_weights(unbroken.model, resumed.model)


def test_ctrl_c_saves_a_checkpoint_and_stops(make_trainer, tmp_path):
    handler = signal.getsignal(signal.SIGINT)
    trainer = make_trainer(callbacks=[PressCtrlC(2)], folder="run")
    with pytest.raises(KeyboardInterrupt, match="step 3"):
        trainer.train()
    assert signal.getsignal(signal.SIGINT) is handler
    assert (tmp_path / "run" / "checkpoint-3" / "model.safetensors").is_file()
    resumed = make_trainer(folder="run")
    resumed.train(resume_from_checkpoint=True)
    assert resumed.state.global_step == 16
