"""The questions of chapter 2: what recv fills, messages and steps, deadlocks, a shift that hangs, three myths."""

from course.questions.question import Answer, Choose, FindLine, Number, Statement

QUESTIONS = (
    Choose(
        name="first_half_to_rank_3",
        topic="messages",
        text="Rank 3's `x` was 30, 31, 32, 33. What is it afterwards?",
        answers=(
            Answer(
                "30, 31, 0, 1",
                "`recv` fills the tensor that you pass in, here `x[2:]`, with the first half of "
                "rank 0's `x`. The rest stays. And a message copies: rank 0 still has its "
                "numbers.",
            ),
            Answer(
                "0, 1, 32, 33",
                "The numbers go into `x[2:]`, the half that rank 3 passed, not to where they were on rank 0.",
            ),
            Answer(
                "30, 31, 32, 33",
                "`recv` does not return the numbers, it writes them into the tensor that you pass. So `x` changes.",
            ),
            Answer(
                "30, 31, 2, 3", "That would be the second half of rank 0's `x`. Rank 0 sends `x[:2]`, its first half."
            ),
        ),
        right=0,
    ),
    Number(
        name="ring_pass_steps",
        topic="messages and steps",
        text="Ring pass on four ranks, until the vector is back at rank 0: how many steps?",
        right=Answer(
            "p", "Each of the four messages carries what the one before has brought, so each has a step of its own."
        ),
        wrong=(
            Answer(
                "1", "Rank 1 cannot pass on what it does not have yet: each message waits for the one before.", step=2
            ),
            Answer(
                "p-1", "After three steps the vector is at rank 3. One more message brings it back to rank 0.", step=3
            ),
            Answer("2*p", "A `send` and its `recv` are one message: four messages, so four steps."),
            Answer(
                "2", "No two messages can share a step here: there is only one vector, and it is in one place.", step=2
            ),
        ),
        unit="steps",
        p=4,
    ),
    Number(
        name="shift_steps",
        topic="messages and steps",
        text="Shift on four ranks: how many steps?",
        right=Answer(
            "1",
            "Each rank sends what it had at the start, so no message has to wait for another. What arrives goes into a "
            "second buffer, because the rank's own numbers are still leaving.",
        ),
        wrong=(
            Answer(
                "p", "There are four messages, and none needs what another one brings. They share one step.", step=1
            ),
            Answer(
                "p-1", "Nothing is passed on here. Each vector moves by one place, and all of them at once.", step=1
            ),
            Answer(
                "2",
                "A rank can send and receive at the same time. It needs a second buffer for that, not a second step.",
            ),
        ),
        unit="steps",
        p=4,
    ),
    Choose(
        name="all_send_first",
        topic="deadlock",
        text="All four ranks run these two lines. What happens?",
        answers=(
            Answer(
                "Each rank gets its left-hand neighbour's numbers.",
                "For that, the sends would have to finish first. Each waits for a `recv`, and all ranks are in `send`.",
            ),
            Answer(
                "Some ranks get wrong numbers, because messages cross.",
                "Messages cannot mix: each has one sender and one receiver. The trouble comes earlier, in `send`.",
            ),
            Answer(
                "All ranks wait: none gets past its `send`.",
                "Rank 0 waits until rank 1 receives. Rank 1 is in its own `send` and waits for rank 2, which "
                "waits for rank 3, which waits for rank 0: a circle.",
            ),
        ),
        right=2,
    ),
    Number(
        name="even_odd_in_flight",
        topic="messages and steps",
        text="Even ranks send first, odd ranks receive first. How many of the four messages are in flight at once?",
        right=Answer(
            "2",
            "Two at a time: first 0 to 1 and 2 to 3, then 1 to 2 and 3 to 0. In principle all four could be in flight "
            "at once, but a rank in `send` cannot receive. So it takes two steps where one would do.",
        ),
        wrong=(
            Answer(
                "4",
                "For that every rank would have to send and receive at once. Here each rank does one after the other.",
            ),
            Answer(
                "1", "Ranks 0 and 2 both send first, and their receivers are ready: two messages travel side by side."
            ),
        ),
        unit="messages",
        p=4,
    ),
    FindLine(
        name="shift_of_a_colleague",
        topic="handles",
        text="A colleague wrote this `shift`. Which line makes it hang?",
        source="""
%%ranks
def shift(x):
    right, left = (rank + 1) % world_size, (rank - 1) % world_size
    inbox = torch.empty_like(x)
    dist.isend(x, right)
    dist.recv(inbox, left)
    return inbox
shift(x)
""",
        right=(5,),
        why="The handle that `isend` returns is not kept, so Python deletes it. gloo then drops the message, unless "
        "its receiver is already waiting for it. If the receivers are usually there first, the bug stays hidden for "
        "months. Keep every handle, and wait for it.",
        wrong=(
            Answer("2", "This line only names the function."),
            Answer("3", "The neighbours are right, for rank 0 and the last rank too: that is what `%` is for."),
            Answer("4", "`torch.empty_like(x)` is fine: `recv` overwrites all of it, so it need not hold anything."),
            Answer("6", "A blocking `recv` is right here: the rank's own send has been started and does not block."),
            Answer(
                "7",
                "`inbox` may be returned: `recv` is over, so it is filled. It is the send that is never waited for.",
            ),
        ),
    ),
    Choose(
        name="shift_on_gpus",
        topic="deadlock",
        text="The messages are long, and each GPU starts a call only when its previous call has ended. What happens?",
        answers=(
            Answer(
                "Each GPU gets its numbers: `isend` does not wait.",
                "Here `isend` does not block Python. The GPU's send still needs its receive, like every long message.",
            ),
            Answer(
                "All four GPUs hang in their first call.",
                "Each send waits for a receive that is queued behind another send. It is the same circle as when all "
                "ranks called `send` first, now inside the GPU queues.",
            ),
            Answer(
                "It takes two steps, as with even and odd ranks.",
                "There half of the ranks received first. Here all four begin with a send.",
            ),
        ),
        right=1,
    ),
    Statement(
        name="small_never_blocks",
        topic="blocking",
        text="Small messages go into a buffer, so a `send` of four bytes does not block.",
        true=False,
        why="In gloo `send` waits for its `recv`, however short the message is. NCCL and many MPI libraries have such "
        "a buffer, and promise nothing. A program that relies on it runs with 4 bytes and hangs with 4 MB.",
    ),
    Statement(
        name="free_after_send",
        topic="blocking",
        text="When `send` has returned, you may overwrite the tensor: the receiver still gets the old numbers.",
        true=True,
        why="This is what a blocking `send` promises: the bytes have been copied out of the tensor, even if they have "
        "not arrived yet. With `isend` you have to `wait()` first.",
    ),
    Statement(
        name="messages_in_order",
        topic="messages",
        text="Three messages from rank 0 to rank 1 are received in the order in which they were sent.",
        true=True,
        why="Between two ranks (and with one tag) the first `recv` takes the first message that was "
        "sent, the second `recv` the second. From different ranks messages may come in any order.",
    ),
    Number(
        name="barrier_rounds",
        topic="barrier",
        text="What a rank knows doubles in every round. How many rounds do five ranks need?",
        right=Answer("3", "After a round each rank has heard of 2 ranks, then 4, then all 5, itself included."),
        wrong=(
            Answer(
                "p-1",
                "4 would be hearing of one new rank per round. Here a message brings all that its sender has heard.",
                step=2,
            ),
            Answer(
                "p", "No rank has to go through all others: the news of several ranks travels in one message.", step=2
            ),
            Answer("2", "After two rounds each rank has heard of 4 ranks, itself included. One is missing.", step=2),
        ),
        unit="rounds",
        p=5,
    ),
)
