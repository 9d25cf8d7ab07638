import evaluate
from evaluate.utils import launch_gradio_widget

module = evaluate.load("./aopc.py")
launch_gradio_widget(module)
