import evaluate
from evaluate.utils import launch_gradio_widget

module = evaluate.load("./iou_f1.py")
launch_gradio_widget(module)
