"""The registered one-token decisions, by the names that specifications use in `score_questions`.

Whether a question helps with the loaded model is measured (`agents.steps.measures.question_measure`).
"""

from agents.model.question import Question

_ALL = (
    Question(
        "confirm_finding",
        "A scanner reported this about the code:\n{subject}\nIs it a real defect in this code?",
        ("yes, it is a real defect", "no, it is a false alarm"),
    ),
    Question(
        "severity",
        "A scanner reported this defect:\n{subject}\nHow severe is it?",
        ("critical", "high", "medium", "low", "info"),
    ),
    Question(
        "relevance",
        "Passage:\n{subject}\nDoes the passage help with the task?",
        ("yes", "no"),
    ),
    Question(
        "duplicate",
        "Compare:\n{subject}\nDo both describe the same problem?",
        ("the same", "different"),
    ),
    Question(
        "pass_fail",
        "Requirement and result:\n{subject}\nDoes the result meet the requirement?",
        ("pass", "fail"),
    ),
    Question(
        "better",
        "Two answers to the task:\n{subject}\nWhich answer is better?",
        ("the first", "the second"),
    ),
    Question(
        "supported",
        "Statement and source:\n{subject}\nDoes the source support the statement?",
        ("supported", "not supported"),
    ),
)
QUESTIONS: dict[str, Question] = {question.name: question for question in _ALL}
