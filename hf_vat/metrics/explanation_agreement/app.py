import evaluate
from evaluate.utils import launch_gradio_widget

module = evaluate.load("./explanation_agreement.py")
launch_gradio_widget(module)
