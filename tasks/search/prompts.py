"""Prompts of the roles: MHGPO's prompts (App. B) for the roles for which the paper prints a prompt,
colearn's prompts for the other roles, and compact prompts of all roles for small models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from colearn.programs.workflow.qa import Passage

REWRITER = """You are a professional assistant proficient in transforming complex or unclear \
questions into simpler, more searchable sub-questions. Please assist me in rewriting or breaking \
down the provided questions into sub-questions to make it easier to search for answers using a \
search engine. The rewritten sub-questions must have logical connections and dependencies, and \
should not be overly repetitive in meaning. Moreover, refrain from using vague demonstrative \
pronouns and similar expressions, and avoid duplicate sub-questions. Output the sub-questions in \
the form of a string list, with the format: ### <query1>; <query2>; <query3>; ... ###"""
REWRITER_USER = "Original question is {question}"

RERANKER = """You are a helpful, respectful, and honest assistant. Your task is to identify and \
output the IDs (such as 0, 1, 2, etc.) of the candidate Documents that are useful for answering \
the given Question. Now, simply output the IDs of those candidate Documents that can assist in \
answering the Question: {question}. Arrange them in the order where the more relevant documents \
are listed first."""
RERANKER_USER = """Question is: {question}
{documents}
Do not output anything else."""

ANSWERER = """You are a helpful, respectful and honest assistant. Your task is to predict the \
answer to the question based on the given documents. If you don't know the answer to a question, \
please don't share false information. Answer the question as accurately as possible."""
ANSWERER_USER = """Question is: {question}
{documents}
Now, answer the Question: {question}, based on the above Documents."""

SINGLE = """You are a helpful, respectful and honest assistant. Answer the question as accurately \
as possible, in a few words and nothing else.

Question is: {question}"""

EXTRACTOR = """Copy from the documents, in at most {limit} words, what helps to answer the \
question. If nothing does, write: nothing.

Question is: {question}
Search query was: {query}
{documents}"""

PLANNER = """You start a search for the answer to a question. Write down what you know and what \
has to be found out, and your best answer so far, as a few words and nothing else:
<knowledge>...</knowledge><answer>...</answer>

Question is: {question}"""

SEARCHER = """Another assistant collects knowledge about a question. Write one search query for \
what is missing, or <end> if nothing is.

Question is: {question}
Knowledge: {knowledge}"""

SUMMARIZER = """Say in at most {limit} words what these documents tell about the query.

Query is: {query}
{documents}"""

UPDATER = """Update the knowledge about a question: add what the summary tells, drop what is wrong \
or of no use, at most {limit} words.

Question is: {question}
Knowledge: {knowledge}
Summary: {summary}"""

ANSWER_FROM_KNOWLEDGE = """Answer the question from the knowledge, in a few words and nothing else.

Question is: {question}
Knowledge: {knowledge}"""

SYSTEM: Mapping[str, str] = {"rewriter": REWRITER, "reranker": RERANKER, "answerer": ANSWERER}
"""Prompts of the system turn by role, as in MHGPO; `FULL` has the user turn."""

FULL: Mapping[str, str] = {
    "rewriter": REWRITER_USER,
    "reranker": RERANKER_USER,
    "answerer": ANSWERER_USER,
    "single": SINGLE,
    "extractor": EXTRACTOR,
    "planner": PLANNER,
    "searcher": SEARCHER,
    "summarizer": SUMMARIZER,
    "updater": UPDATER,
    "concluder": ANSWER_FROM_KNOWLEDGE,
}

COMPACT: Mapping[str, str] = {
    "rewriter": "rewrite {question}",
    "reranker": "rank {question}\n{documents}",
    "answerer": "answer {question}\n{documents}",
    "single": "answer {question}",
    "extractor": "extract {question}\n{documents}",
    "planner": "plan {question}",
    "searcher": "search {question}\nknown {knowledge}",
    "summarizer": "sum {query}\n{documents}",
    "updater": "update {question}\nknown {knowledge}\nnew {summary}",
    "concluder": "conclude {question}\nknown {knowledge}",
}


def full_documents(passages: Sequence[Passage]) -> str:
    """The passages in the paper's format, numbered from 0."""
    return "\n".join(
        f"Document{number}: {{title: {passage.title}, snippet: {passage.text}}}"
        for number, passage in enumerate(passages)
    )


def compact_documents(passages: Sequence[Passage]) -> str:
    """The passages with number and text, without titles."""
    return "\n".join(f"{number} {passage.text}" for number, passage in enumerate(passages))
