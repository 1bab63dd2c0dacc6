"""Notes on chapter 6: two numbers, an envelope, and units on everything."""

from course.notes.note import Again, Mistake, Notes, Part, Reply

NOTES = Notes(
    fifty=(
        Part(
            10,
            "Two numbers",
            "The ship and the courier, the curve on the wall, then `long_message` and `half_latency`. No number gets "
            "through without its unit.",
        ),
        Part(
            12,
            "Measure it: there and back",
            "Why a ping-pong and not one message? One clock. Start the three networks, draw the expected curves "
            "on the board while they run, then compare.",
        ),
        Part(
            8,
            "Above the critical size: fewer bytes",
            "`two_shot_first` by clicking. Then write both formulas side by side.",
        ),
        Part(
            6,
            "Where the curves cross",
            "`one_two_crossing` on paper: set them equal. Then look at the measured crossing.",
        ),
        Part(
            14,
            "On paper",
            "`estimate_gradients`, `estimate_overlap` and `estimate_busbw`, four minutes each, in pairs, books closed. "
            "Collect powers of ten first, digits later.",
        ),
    ),
    ninety=(
        Again(10, "Two numbers"),
        Again(
            14, "Measure it: there and back", "Ask for the three rules of measuring and what goes wrong without each."
        ),
        Part(
            5,
            "From a message to a collective",
            "Sum up the ring by hand on the board; the cell says the same.",
        ),
        Part(
            9,
            "Below the critical size: fewer messages",
            "`bucket_times`, then the blank of `all_reduce_many`.",
        ),
        Again(8, "Above the critical size: fewer bytes"),
        Again(14, "Where the curves cross", "Before you move the slider: where does the crossing go with more ranks?"),
        Part(
            10,
            "Diagnose: a slow link",
            "Everybody has the table of pairs. Rows or columns? Then `slow_link`.",
        ),
        Again(10, "On paper", "Each pair explains one at the board, with units."),
        Part(
            4,
            "Myth check",
            "`busbw_measured` and `algbw_falls`.",
        ),
        Part(
            6,
            "Extra: what the formula leaves out",
            "The three protocols: why has NCCL three? Then `estimate_token` on paper.",
        ),
    ),
    home="`two_shot_all_reduce`, and the estimates that were not reached.",
    room="estimate_gradients",
    ask="Give three minutes on paper. Write all answers on the board without a word, sorted. The factors between them"
    " are about 2, 16 and 8: half a ring, all ranks together, bits. Let the room say which mistake makes which "
    "factor, then work it out once: 16 GB, times 2 (15/16), at 50 GB/s.",
    wrong=(
        Mistake(
            "estimate_gradients",
            "A factor of 2 is nearly always the other half of the ring, or bytes per number.",
        ),
        Mistake(
            "estimate_gradients",
            "A factor of 8 is bits. A NIC is *sold* in Gbit/s and *used* in GB/s.",
            answer=3,
        ),
        Mistake(
            "estimate_token",
            "The bytes are little here, the starts are nearly all: 14 of them. Compare N/p with alpha/beta "
            "before you compute.",
        ),
        Mistake(
            "bucket_times",
            "33 calls against 1, but the one call has longer steps. It would be 33 only if bytes were free.",
            answer=1,
        ),
        Mistake(
            "busbw_measured",
            "Nobody measured a wire. It is N/T times a factor, as if the messages were those of a ring.",
        ),
    ),
    sheet=(
        "long_message",
        "half_latency",
        "one_two_crossing",
        "estimate_gradients",
        "estimate_overlap",
        "estimate_token",
    ),
    replies=(
        Reply(
            "Why a ping-pong and not one message",
            "A single message starts on one machine's clock and ends on another's. There and back is measured"
            " by one clock, and half of it is the message.",
        ),
        Reply(
            "where does the crossing go with more ranks",
            "Down to the critical size: p/(p - 2) times alpha/beta. One-shot sends (p - 1) N, so with more ranks "
            "it loses earlier.",
        ),
        Reply(
            "why has NCCL three",
            "Because alpha and bandwidth are a trade. LL starts fastest and has half the bandwidth, so it is for short "
            "vectors. Simple has all of the bandwidth and starts slowly, so it is for long ones.",
        ),
        Reply(
            "Rows or columns",
            "A column: all messages *to* that rank are slow, from whichever rank. Its own row is as fast as "
            "the others, so it is the link into that rank.",
        ),
    ),
)
