"""ICU QA's own questions: the file that the released program writes from MIMIC-III."""

from __future__ import annotations

from thread_kit.envs.qa.question_file import QuestionFile

QUESTIONS = QuestionFile(
    name="mimiciii_icu_qa_benchmark.txt",
    answers="mimic_answer",
    variable="THREAD_KIT_ICU_QUESTIONS",
    remedy="mimiciii_icu_qa/build_mimiciii_icu_qa.py of the repository philipmit/thread writes it, "
    "from MIMIC-III; name it by `questions=`, or by THREAD_KIT_ICU_QUESTIONS; or take generated "
    "questions: IcuQA(number=0)",
)
