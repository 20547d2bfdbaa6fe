"""TextCraft (ADaPT paper, appendix B): crafting in Minecraft's recipes, 200 official tasks."""
