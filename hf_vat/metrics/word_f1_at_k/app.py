import evaluate
from evaluate.utils import launch_gradio_widget

module = evaluate.load("./word_f1_at_k.py")
launch_gradio_widget(module)
