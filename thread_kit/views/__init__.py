"""What people see of an episode: one view model, lowered to text, static HTML, plotly and a widget.

    model.py     the view model: immutable nodes, derived from an episode
    text.py      `print(episode)`; one thread to the character
    html.py      how a notebook shows an episode: no script, folds by itself
    plot.py      Figure 3 of the paper, and costs, as plotly figures (tidy.py: its tree)
    player.py    the widget: watch, step, rewind, fork (film.py, telling.py, track.py, player*.js)
    page.py      the player in one HTML file that needs no kernel
    palette.py   the colours of all of them; wording.py: how they write texts, numbers, costs

Nothing is imported here: text needs neither plotly nor a browser.
"""
