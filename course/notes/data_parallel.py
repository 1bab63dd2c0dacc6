"""Notes on chapter 11: the line of chapter 0 trains a model, and hides behind it."""

from course.notes.note import Again, Mistake, Notes, Part, Reply

NOTES = Notes(
    fifty=(
        Part(
            10,
            "Your ring trains a model",
            "`dp_repair_late`. Then the three things on the board: same start, same averaged gradient, same step."
            " Leave them there.",
        ),
        Part(
            8,
            "Buckets",
            "`dp_per_parameter` on paper, with alpha and beta from chapter 6. One call instead of sixteen. Then "
            "`dp_hook_order`: which gradient is ready first?",
        ),
        Part(
            6,
            "Overlap",
            "Layer 3 travels while layers 2, 1 and 0 are computed. What is left to hide the last one behind?",
        ),
        Part(
            10,
            "Watch",
            "Both Timelines, one after the other. Before the second: what will be different? Ask which all_reduce"
            " can never hide.",
        ),
        Part(
            10,
            "DDP",
            "`dp_first_buckets` and `dp_sends_weights`, then the recorded calls: nothing in there that they have "
            "not written.",
        ),
        Part(
            6,
            "Who is slow?",
            "`dp_who_is_slow`. The rank that waits least.",
        ),
    ),
    ninety=(
        Again(12, "Your ring trains a model", "Those who have a ring of their own put it in."),
        Again(6, "Buckets"),
        Part(
            16,
            "Write: buckets",
            "Alone. First on the board: the last gradient goes into the first bucket. Why will be clear in twenty"
            " minutes.",
        ),
        Part(
            4,
            "Measure",
            "Guess the two numbers, run it.",
        ),
        Again(4, "Overlap"),
        Again(12, "Watch", "With our `overlapped_average`: reading it line by line is the exercise."),
        Again(10, "DDP"),
        Part(
            10,
            "How large a bucket?",
            "`dp_bucket_best`: too small and too large on the board, then the model, then the measurement.",
        ),
        Part(
            4,
            "Gradient accumulation",
            "`dp_no_sync`.",
        ),
        Again(8, "Who is slow?", "Also `dp_one_slow` first."),
        Part(
            4,
            "Find the fault",
            "`dp_largest_first` in pairs.",
        ),
    ),
    home="`bucketed_average` and `overlapped_average`, the second fault, and the knobs at the end.",
    room="dp_repair_late",
    ask="Everybody knows by now that averaging repairs. So ask late repair with confidence, and most hands go up for "
    "*they come together again*. Let them write one step of both ranks on the board, w minus the same number. "
    "Then run it.",
    wrong=(
        Mistake(
            "dp_repair_late",
            "Averaged gradients keep a distance, they do not close it. Two walkers who take the same steps stay "
            "as far apart as they are.",
            answer=1,
        ),
        Mistake(
            "dp_per_parameter",
            "They forget the latency: 16 calls times 6 messages in a row times 4 ms.",
        ),
        Mistake(
            "dp_first_buckets",
            "DDP cannot know the order before it has seen one backward pass. That first pass is one bucket.",
            answer=1,
        ),
        Mistake(
            "dp_who_is_slow",
            "Long waits look guilty. Say: those who wait were early.",
        ),
        Mistake(
            "dp_sends_weights",
            "Weights are sent once, at the start. After that only gradients: the same step keeps them alike.",
        ),
        Mistake(
            "dp_bucket_best",
            "Leaving at once is good for one bucket and bad for sixteen: each pays its latency.",
        ),
    ),
    sheet=("dp_repair_late", "dp_per_parameter", "dp_hook_order", "dp_first_buckets", "dp_no_sync", "dp_who_is_slow"),
    replies=(
        Reply(
            "which gradient is ready first",
            "That of the last layer, 3: the backward pass begins at the loss and goes from there to the first layer.",
        ),
        Reply(
            "What is left to hide the last one behind",
            "Nothing in this backward pass: layer 0's gradient is finished when the pass is, and the step waits "
            "for its all_reduce.",
        ),
        Reply(
            "what will be different",
            "In the second run each all_reduce is exposed: the hook waits at once, so the next layer is "
            "computed only after it. No call lies above computing any more, and the pass is longer.",
        ),
    ),
)
