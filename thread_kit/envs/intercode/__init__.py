"""What InterCode's SQL and Bash tasks have in common (Yang et al. 2023; StateFlow paper, 4.1)."""
