import evaluate
from evaluate.utils import launch_gradio_widget

module = evaluate.load("./comprehensiveness.py")
launch_gradio_widget(module)
