"""What DataCommons QA and ICU QA have in common: questions that threads answer by code."""
