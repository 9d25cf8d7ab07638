"""The pipeline "text-classification-explained": a prediction and what each word did for it, from one pass."""

import torch
from transformers import AutoModelForTokenClassification, Pipeline
from transformers.utils import logging

from .attribution import CENTERS, of_log_odds
from .classes import class_id, class_names
from .problems import MULTI_LABEL, SINGLE_LABEL, Problem, says_the_same
from .reading import named_outputs, sees_padding, takes_center
from .words import PAIR, TYPE_BITS, encode_words, maximum_length, positions_of

logger = logging.get_logger(__name__)

TASK = "text-classification-explained"
_NOT_GIVEN = object()  # top_k=None already means all classes
_FUNCTIONS = {"softmax": lambda logits: logits.softmax(-1), "sigmoid": torch.sigmoid, "none": lambda logits: logits}
_BY_PROBLEM = {SINGLE_LABEL: "softmax", MULTI_LABEL: "sigmoid"}  # as in the stock pipeline
_READ = ("token_importance", "token_attribution", "token_mask")
_TRUNCATIONS = (True, "longest_first", "only_first")
_PADDINGS = (True, False, "longest", "max_length", "do_not_pad")


class ExplainedTextClassificationPipeline(Pipeline):
    """
    Text classification that says what each word did for the prediction.

    ```python
    >>> import hf_vat  # registers the task
    >>> from transformers import pipeline

    >>> explain = pipeline("text-classification-explained", model=model, tokenizer=tokenizer)
    >>> explain("good film")
    {'label': 'pos', 'score': 0.98, 'words': [{'word': 'good', 'start': 0, 'end': 4, 'score': 2.1, 'attention': 0.9, 'seen': True}, ...]}
    ```

    The model must return `token_importance`, as models of hf_vat with `pooling="attention"` do (the attention of VAT,
    Zhou et al., Findings of ACL 2021), or `token_mask`, as those with a word mask do (VMASK, Chen and Ji, EMNLP 2020);
    of both the attention is used. Or its folder has an explainer (`hf_vat.amortized`), as any classifier's may. It is put into eval mode. Such models are saved together with this pipeline, so
    that `pipeline(model=folder, trust_remote_code=True)` finds it where hf_vat is not installed.
    """

    _explainer = None  # loaded when it is first needed; False if it cannot be used
    _load_tokenizer = True  # type: ignore[assignment]  # of these the base class says that they are None
    _load_processor = _load_image_processor = _load_video_processor = _load_feature_extractor = False  # type: ignore[assignment]

    def __call__(self, inputs, **kwargs):
        """
        Classify texts, with the words of each.

        A text longer than the model takes is cut, with one warning; its words stay in the result, marked as not seen.
        Empty and blank texts have no words, and a prediction.

        Args:
            inputs (`str`, `dict`, a list of them, generator or `torch.utils.data.Dataset`):
                One or several texts; a pair of texts is a dictionary with the keys `text` and `text_pair`.
            top_k (`int`, *optional*):
                How many classes, labels or scores to return, best first; None for all. `return_all_scores=True` means the same.
            target (`int` or `str`, *optional*):
                The class to return, by its id or its name, in place of the predicted one.
            function_to_apply (`str`, *optional*):
                What makes scores of logits: `"softmax"`, the default for models that choose between classes, `"sigmoid"`, that for
                several labels, or `"none"`, that for regression.
            max_length (`int`, *optional*):
                Tokens to keep, special ones included; as many as the model takes, if that is less or it is not given.
            truncation, padding (*optional*):
                As in the stock pipeline, where they are often given. They change nothing: a text that is too long is
                always cut, and texts are padded where they share a batch.
            batch_size (`int`, *optional*, defaults to 1):
                How many texts the model is given at once.

        Returns:
            For one text a `dict`, for a list a list of them, for a generator or data set an iterator:

            - **label** (`str`) -- the predicted class;
            - **score** (`float`) -- its probability, the softmax of the logits, or what `function_to_apply` gives;
            - **words** (`list[dict]`) -- for each word in the order of the text

                - **word** (`str`), **start**, **end** (`int`) -- `text[start:end]`, offsets in code points;
                - **in** (`str`) -- of a pair, the text that the word is in: `"text"` or `"text_pair"`;
                - **score** (`float`) -- what the word adds to the log-odds of the class, or to the label's logit, or to the
                  score of a regression: attention times its gradient, summed over the tokens of the word. Signed; for each
                  class its own; see `token_attribution` in [`~hf_vat.models.classifier.VATClassifierOutput`].
                  Without attention the word's mask, from 0 to 1, averaged over its tokens, whatever the class. Where the model's
                  folder has an explainer (`hf_vat.amortized`), what that says;
                - **attention** (`float`) -- where there is attention, the word's share of it, summed over its tokens. At least 0;
                  the words of a text sum to at most 1, and to 1 where every token belongs to a word. The same for every class;
                - **seen** (`bool`) -- False for words that did not reach the model; their score is 0.

            If `top_k` is given, each text has a list of such dicts, one per class, as in the stock
            text-classification pipeline.

        Raises:
            ValueError: for an input that is not a text, an argument that is not one of these or out of range, or a model
                with neither `token_importance` nor `token_mask`.
        """
        if isinstance(inputs, list) and not inputs:
            return []  # the base class looks at the first one
        return super().__call__(inputs, **kwargs)

    def _sanitize_parameters(
        self,
        top_k=_NOT_GIVEN,
        target=None,
        function_to_apply=None,
        return_all_scores=None,
        max_length=None,
        truncation=True,
        padding=False,
        **others,
    ):
        if others:
            raise ValueError(
                f"{', '.join(others)} cannot be given to {TASK!r}; it takes top_k, target, function_to_apply, "
                "return_all_scores, max_length, truncation, padding and batch_size."
            )
        if truncation not in _TRUNCATIONS:
            raise ValueError(
                f"truncation is {truncation!r}; a text that is too long is always cut, so give True or leave it out."
            )
        if padding not in _PADDINGS:
            raise ValueError(f"padding is {padding!r}; it has no effect on the result, so leave it out.")
        if return_all_scores and top_k is _NOT_GIVEN:
            top_k = None
        given = {}
        if top_k is not _NOT_GIVEN:
            if top_k is not None and (isinstance(top_k, bool) or not isinstance(top_k, int) or top_k < 1):
                raise ValueError(
                    f"top_k is {top_k!r}; give the number of classes to return, at least 1, or None for all."
                )
            given |= {"top_k": top_k, "target": None}  # also in place of a target that the pipeline was made with
        if target is not None:
            if given:
                raise ValueError("Both target and top_k are given; give the class to return, or how many to return.")
            given |= {"target": self._class_id(target), "top_k": _NOT_GIVEN}
        if function_to_apply is not None:
            name = str(
                getattr(function_to_apply, "value", function_to_apply)
            ).lower()  # transformers has an enumeration
            if name not in _FUNCTIONS:
                raise ValueError(f"function_to_apply is {function_to_apply!r}; choose one of {', '.join(_FUNCTIONS)}.")
            given["function_to_apply"] = name
        if max_length is None:
            return {}, {}, given
        least = self.tokenizer.num_special_tokens_to_add() + 1
        if isinstance(max_length, bool) or not isinstance(max_length, int) or max_length < least:
            raise ValueError(f"max_length is {max_length!r}; give a whole number of tokens, at least {least}.")
        return {"max_length": max_length}, {}, given

    def _class_id(self, target) -> int:
        try:
            return class_id(target, class_names(self.model.config))
        except ValueError as error:
            raise ValueError(f"target {error}") from None

    def preprocess(self, text, max_length=None):
        if isinstance(text, dict) and "text" in text and set(text) <= set(PAIR):
            text = text if text.get("text_pair") is not None else text["text"]
        parts = [text[key] for key in PAIR] if isinstance(text, dict) and set(text) == set(PAIR) else [text]
        for part in parts:
            if not isinstance(part, str):
                raise ValueError(
                    f"The input is a {type(part).__name__}; give one text (str) or a list of texts, such as "
                    'list(dataset["text"]). A pair of texts is {"text": "…", "text_pair": "…"}.'
                )
            if any("\ud800" <= character <= "\udfff" for character in part):
                raise ValueError(f"The text {part[:40]!r} contains half a character (a lone surrogate); correct it.")
        largest, explainer = maximum_length(self.model, self.tokenizer), self._load_explainer()
        if explainer is not None:
            largest = min(largest, positions_of(explainer))
        least = self.tokenizer.num_special_tokens_to_add(pair=len(parts) > 1) + 1
        if max_length is not None and max_length < least:
            raise ValueError(f"max_length is {max_length}; a pair of texts needs at least {least} tokens.")
        encoded = encode_words(self.tokenizer, [text], min(max_length or largest, largest))[0]
        if encoded.truncated:
            logger.warning_once(
                f"Texts are cut to the {len(encoded.input_ids)} tokens that the model takes; the words cut off have "
                "score 0 and seen=False."
            )
        input_ids = torch.tensor([encoded.input_ids])  # [1, T]
        model_inputs = {"input_ids": input_ids, "attention_mask": torch.ones_like(input_ids), "encoded": encoded}
        if "token_type_ids" in self.tokenizer.model_input_names:
            model_inputs["token_type_ids"] = torch.tensor([encoded.token_types or [0] * len(encoded.input_ids)])
        return model_inputs

    def _forward(self, model_inputs):
        encoded = model_inputs.pop("encoded")
        # Padding on the left would shift the positions of some encoders, so it is brought to the right.
        order = (1 - model_inputs["attention_mask"]).argsort(dim=1, stable=True)  # [B, T]
        model_inputs = {name: tensor.gather(1, order) for name, tensor in model_inputs.items()}
        explainer = self._load_explainer()
        read = [self.model] if explainer is None else [self.model, explainer]
        if any(map(sees_padding, read)):
            found = self._read_without_padding(model_inputs, explainer)
        else:
            found = self._read(model_inputs, explainer)
        if len(found) == 1:  # the logits alone
            raise ValueError(
                f"{type(self.model).__name__} returns no token_importance and no token_mask, so there is nothing to "
                'explain with; use a hf_vat model with pooling="attention" or a word mask, put an explainer into its folder '
                '(hf-vat distill), or call hf_vat.explain(model, tokenizer, texts, method="occlusion"), which works with any '
                "classifier."
            )
        if "token_importance" in found and "token_attribution" not in found and explainer is None:
            logger.warning_once(
                f"{type(self.model).__name__} gives no token_attribution, as a quantised head has no gradient: the scores of words are "
                "the attention, which has no sign and is the same for every class."
            )
        if explainer is not None and getattr(explainer.config, "adds_up", False):
            together = encoded if isinstance(encoded, list) else [encoded]
            said = [self._without_words(one, explainer.config) for one in together]
            found["without_words"] = torch.tensor(said, dtype=torch.float64)  # [B, C]
        return {**found, "attention_mask": model_inputs["attention_mask"], "encoded": encoded}  # of the mask [B, T]

    def _read(self, model_inputs, explainer) -> dict[str, torch.Tensor]:
        """Logits [B, C] of the classifier and what it says of tokens, [B, T], of the attribution [B, T, C]; and what the explainer says
        of them, [B, T, C]."""
        self.model.eval()  # one that comes straight from training would drop out and sample
        asked = {"attribution_center": CENTERS[0]} if takes_center(self.model) else {}
        output = self.model(**model_inputs, **asked, **named_outputs(self.model))
        found = {name: output[name] for name in _READ if getattr(output, name, None) is not None}
        if explainer is not None:
            found["explained"] = explainer(**model_inputs, **named_outputs(explainer)).logits
        return {"logits": output.logits, **found}

    def _read_without_padding(self, model_inputs, explainer) -> dict[str, torch.Tensor]:
        """The same, of texts of equal lengths together."""
        lengths = model_inputs["attention_mask"].sum(1)
        places, parts = [], []
        for length in lengths.unique().tolist():
            of_length = (lengths == length).nonzero().squeeze(1)
            places.append(of_length)
            parts.append(self._read({name: rows[of_length, :length] for name, rows in model_inputs.items()}, explainer))
        order, most = torch.cat(places).argsort(), model_inputs["attention_mask"].shape[1]
        return {
            name: torch.cat(
                [rows if name == "logits" else _widened(rows, most) for rows in (part[name] for part in parts)]
            )[order]
            for name in parts[0]
        }

    def postprocess(self, outputs, top_k=_NOT_GIVEN, target=None, function_to_apply=None):
        encoded = outputs["encoded"]
        if function_to_apply is None:
            function_to_apply = _BY_PROBLEM.get(Problem.of(self.model.config).kind, "none")
        attended = outputs["attention_mask"][0].bool()
        sides = [{}] * len(encoded.words)
        if encoded.pair_start is not None:
            sides = [{"in": PAIR[place >= encoded.pair_start]} for place in range(len(encoded.words))]
        class_scores = _FUNCTIONS[function_to_apply](outputs["logits"][0].double()).tolist()
        results = [
            {
                "label": self.model.config.id2label[label],
                "score": class_score,
                "words": [
                    {"word": word.text, "start": word.start, "end": word.end, **side, **scores, "seen": seen}
                    for word, side, scores, seen in zip(encoded.words, sides, by_word, encoded.seen, strict=True)
                ],
            }
            for label, (class_score, by_word) in enumerate(
                zip(class_scores, self._word_scores(outputs, attended), strict=True)
            )
        ]
        if target is not None:
            return results[target]
        results.sort(key=lambda result: result["score"], reverse=True)
        return results[0] if top_k is _NOT_GIVEN else results[:top_k]

    def _load_explainer(self):
        """The explainer in the model's folder, if its configuration names one; see `hf_vat.amortized`. One that cannot be used, such
        as of a copy without it, or of a model that was trained further, is left out with a warning."""
        place = getattr(self.model.config, "explainer", None)
        if place is None or self._explainer is not None:
            return self._explainer or None
        self._explainer = False
        try:
            found, info = AutoModelForTokenClassification.from_pretrained(
                self.model.config.name_or_path,
                subfolder=place,
                revision=getattr(self.model.config, "_commit_hash", None),
                use_safetensors=True,
                trust_remote_code=False,
                output_loading_info=True,
            )
            if info["missing_keys"]:
                raise ValueError(f"it lacks {', '.join(sorted(info['missing_keys'])[:3])}.")
            self._check_same(found.config)
        except Exception as error:  # transformers raises any kind for what it did not expect
            told = " ".join(str(error).split())[:300]
            logger.warning(f"The explainer {place!r} of {self.model.config.name_or_path} is left out: {told}")
        else:
            self._explainer = found.eval().to(self.model.device)
        return self._explainer or None

    def _check_same(self, config) -> None:
        """
        Raises:
            ValueError: if an explainer is for other classes, or its classifier said something else of a text without words.
        """
        if config.id2label != self.model.config.id2label:
            raise ValueError("it is for other classes.")
        ids, before = getattr(config, "no_word_ids", None), getattr(config, "no_word_outputs", None)
        if ids is None or before is None:
            return
        if not says_the_same(before, self._said(ids)):
            raise ValueError("it was made for another classifier, or for this one before it was trained further.")

    def _said(self, ids: list[int]) -> list[float]:
        """What the classifier says of a text of typed ids."""
        self.model.eval()
        typed = torch.tensor([ids], device=self.model.device)
        inputs = {"input_ids": typed % 2**TYPE_BITS, "attention_mask": torch.ones_like(typed)}
        assert self.tokenizer is not None
        if "token_type_ids" in self.tokenizer.model_input_names:
            inputs["token_type_ids"] = typed >> TYPE_BITS
        with torch.no_grad():
            logits = self.model(**inputs, **named_outputs(self.model)).logits[0].double().cpu()
        return Problem.of(self.model.config).outputs(logits).tolist()

    def _without_words(self, encoded, config) -> list[float]:
        """f(no word): what the explainer remembers of it, or of a text of another form, such as a pair beside single texts or one
        without any word, what the classifier says."""
        assert self.tokenizer is not None
        ids = encoded.without_words(self.tokenizer.unk_token_id)
        return config.no_word_outputs if ids == config.no_word_ids else self._said(ids)

    def _explained(self, outputs, attended) -> list[list[float]]:
        """For each class the scores of each word by the explainer, as `explain(method="amortized")` has them."""
        assert self._explainer is not None
        encoded, config = outputs["encoded"], self._explainer.config
        by_class = [encoded.word_scores(row) for row in outputs["explained"][0][attended].double().T.tolist()]
        if not getattr(config, "adds_up", False):
            return by_class
        found = Problem.of(self.model.config).outputs(outputs["logits"][0].double()).tolist()
        return [
            encoded.adding_up_to(output - base, scores)
            for scores, base, output in zip(by_class, outputs["without_words"][0].tolist(), found, strict=True)
        ]

    def _word_scores(self, outputs, attended) -> list[list[dict[str, float]]]:
        """For each class the scores of each word."""
        encoded, classes = outputs["encoded"], outputs["logits"].shape[1]
        attention = None
        if "token_importance" in outputs:
            attention = encoded.word_scores(outputs["token_importance"][0][attended].tolist())
        if "explained" in outputs:
            beside = [{}] * len(encoded.words) if attention is None else [{"attention": weight} for weight in attention]
            return [
                [{"score": score, **more} for score, more in zip(scores, beside, strict=True)]
                for scores in self._explained(outputs, attended)
            ]
        if attention is None:
            masks = encoded.word_averages(outputs["token_mask"][0][attended].tolist())
            return [[{"score": mask} for mask in masks]] * classes
        if "token_attribution" not in outputs:
            return [[{"score": weight, "attention": weight} for weight in attention]] * classes
        attribution = outputs["token_attribution"].double()
        if Problem.of(self.model.config).is_single_label:
            attribution = of_log_odds(attribution, outputs["logits"].double())
        by_class = attribution[0][attended].T.tolist()  # [C, T]
        return [
            [
                {"score": score, "attention": weight}
                for score, weight in zip(encoded.word_scores(row), attention, strict=True)
            ]
            for row in by_class
        ]


def _widened(rows: torch.Tensor, tokens: int) -> torch.Tensor:
    """Numbers of tokens, [B, T, ...], with zeros up to a number of tokens."""
    return torch.cat([rows, rows.new_zeros(rows.shape[0], tokens - rows.shape[1], *rows.shape[2:])], 1)


__all__ = ["TASK", "ExplainedTextClassificationPipeline"]
