"""Notes on chapter 19: the pieces put together, and a step of which every byte is known beforehand."""

from course.notes.note import Again, Mistake, Notes, Part, Reply

NOTES = Notes(
    fifty=(
        Part(
            7,
            "A GPT in one process",
            "`cap_first_loss`, then find f and g in the code together: where does chapter 13 want them? Run the four "
            "models that train alone.",
        ),
        Part(
            11,
            "Two by two",
            "Draw the mesh. `cap_qkv` and `cap_who_averages`: let one row of the room be rank 0, and ask it what it "
            "holds and with whom it talks. Then read `step` aloud.",
        ),
        Part(8, "Is it one model?", "`cap_bits` and `cap_copies` by hands, then the ten steps."),
        Part(5, "Diagnose a layer", "`cap_f_before_norm`. How would you have found it?"),
        Part(5, "Every byte", "`cap_gradients`, then the four lines that say True."),
        Part(7, "Tokens per second", "`cap_tokens_per_second` on paper, then `machines`: what takes longest?"),
        Part(
            7,
            "Your own step",
            "In `step` nothing is sent while a rank computes. Which of the 486 ms could hide behind the backward "
            "pass? Then read the stub of `train_step`, blank by blank: it is homework.",
        ),
    ),
    ninety=(
        Again(9, "A GPT in one process"),
        Again(11, "Two by two", "Those who have their own ring put it in."),
        Part(11, "Write: grad_norm", "First on the board: which numbers exist once, which twice?"),
        Again(8, "Is it one model?"),
        Again(7, "Diagnose a layer"),
        Part(4, "Every byte", "`cap_gradients`."),
        Part(
            12,
            "Write: bytes_per_step",
            "In pairs, from the table of shapes. The check has other shapes than the chapter.",
        ),
        Again(9, "Tokens per second"),
        Again(6, "Your own step"),
        Part(
            6,
            "Your score",
            "`cap_score`, then `cap_bucket`. Run your own `train_step` on the projector and write its score on the "
            "board.",
        ),
        Part(4, "Myth check", "Both, hands only."),
        Part(3, "If you want more", "`cap_pipeline`."),
    ),
    home="`train_step` and its score: who is fastest? `bytes_per_step` for those who want more.",
    room="cap_who_averages",
    ask="Ask it with the mesh on the board. *Rank 1* gets many hands: it is next to rank 0 in the mesh. Then "
    "ask what ranks 0 and 1 do have in common (the text), and what ranks 0 and 2 have (the weights). The rest of the "
    "chapter follows.",
    wrong=(
        Mistake("cap_who_averages", "Rank 1, beside it, holds the other half of the same matrix: other weights."),
        Mistake(
            "cap_bits", "The sums are in another order. Ask for the sum of 1e8, 1 and -1e8 in float32, in two orders."
        ),
        Mistake(
            "cap_gradients",
            "Copies are alike in the tensor group, which has read the same text. The other replica has not.",
            answer=1,
        ),
        Mistake("cap_f_before_norm", "Line 1 needs no f: line 2 applies it.", answer=0),
    ),
    sheet=("cap_first_loss", "cap_qkv", "cap_who_averages", "cap_gradients", "cap_tokens_per_second"),
    replies=(
        Reply(
            "Which of the 486 ms could hide behind the backward pass",
            "Of the gradients' 458 ms as much as the backward pass takes. A gradient can leave as soon as it is "
            "complete, and the last one completes when that pass ends.",
        ),
        Reply(
            "where does chapter 13 want them",
            "f directly in front of the pieces, behind the norm; g directly behind them, in front of the residual sum.",
        ),
        Reply(
            "How would you have found it",
            "Not by the loss, which is within 0.01 of the right one. Compare what should be copies after some "
            "steps: `norm2` differs between ranks 0 and 1.",
        ),
        Reply(
            "what takes longest",
            "The gradients between the machines: 458 of 486 ms by the model. The eight all_reduces inside a "
            "machine take 28 ms.",
        ),
        Reply(
            "which numbers exist once, which twice",
            "In a tensor group of two, each piece of a matrix is on one rank, so its squares are summed over "
            "the group. Embeddings, norms and biases behind g are on both, and may count once.",
        ),
    ),
)
