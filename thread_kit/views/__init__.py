"""What people see of an episode: one view model, lowered to text, static HTML, plotly and a widget.

Nothing is imported here: text needs neither plotly nor a browser. player/ alone talks back.
"""
