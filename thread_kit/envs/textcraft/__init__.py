"""TextCraft (ADaPT paper, 4.1 and appendix E): crafting by Minecraft's recipes, 200 tasks."""
