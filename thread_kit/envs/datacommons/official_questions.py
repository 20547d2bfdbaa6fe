"""DataCommons QA's own questions: their file, and where it comes from."""

from __future__ import annotations

from thread_kit.envs.qa.question_file import QuestionFile

QUESTIONS = QuestionFile(
    name="datacommons_qa_benchmark.txt",
    answers="dc_answer",
    variable="THREAD_KIT_DATACOMMONS",
    remedy="The file is datacommons_qa/datacommons_qa_benchmark.txt of the repository "
    "philipmit/thread; name it by `questions=`, or by THREAD_KIT_DATACOMMONS; or take generated "
    "questions: DataCommonsQA('test', 0)",
)
