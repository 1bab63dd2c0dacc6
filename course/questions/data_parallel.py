"""The questions of chapter 11: what keeps models alike, what hides behind a backward pass, and what does not."""

from course.questions.question import Answer, Choose, FindLine, Number, Statement

QUESTIONS = (
    Choose(
        name="dp_repair_late",
        topic="data parallel",
        text="The two models have drifted apart for 30 steps. For 30 more steps of plain SGD every gradient is "
        "averaged over both ranks. What happens to the weights?",
        answers=(
            Answer(
                "They stay exactly as far apart as they are",
                "Both ranks subtract the same numbers in every step. Whatever gap they had, they keep.",
            ),
            Answer(
                "They come together again, step by step",
                "Nothing pulls them together: both ranks subtract the same average, from weights that differ.",
            ),
            Answer(
                "They drift on, but more slowly",
                "To drift, the ranks would have to take different steps. They take the same ones now.",
            ),
            Answer(
                "They are equal after one step",
                "That would need the weights themselves to be averaged. Here only the gradients are.",
            ),
        ),
        right=0,
    ),
    Number(
        name="dp_per_parameter",
        topic="data parallel",
        text="16 layers, each with a gradient of 256 KiB (262,144 bytes), are all-reduced one after the other by a "
        "ring of 4 ranks: 4 ms per message, 16 MB/s. How long does that take? Write the unit, too.",
        right=Answer(
            "16*(6*4e-3+1.5*262144/16e6)",
            "A ring of 4 has 6 steps: 24 ms of latency. It sends 1.5 N: 24.6 ms for the bytes. Sixteen times 48.6 ms "
            "is 777 ms.",
        ),
        wrong=(
            Answer(
                "16*1.5*262144/16e6",
                "Those are the bytes alone. Each call also pays the latency of 6 messages in a row: 24 ms.",
            ),
            Answer("16*6*4e-3", "That is the latency alone. The bytes of a layer take 24.6 ms more."),
            Answer(
                "6*4e-3+16*1.5*262144/16e6", "That is one call for all the layers together. Here there are 16 calls."
            ),
            Answer("16*(4e-3+262144/16e6)", "That sends each gradient once. A ring has 6 steps, and sends 1.5 N."),
            Answer("16*(6*4e-3+6*262144/16e6)", "A step of the ring sends a quarter of the vector: N/4, not N."),
        ),
        unit="s",
        p=4,
        within=0.02,
    ),
    Choose(
        name="dp_hook_order",
        topic="data parallel",
        text="A model has the layers 0, 1, 2 and 3. Which layer's gradient is ready first in the backward pass?",
        answers=(
            Answer(
                "Layer 0",
                "The forward pass begins there. The backward pass starts at the loss, and reaches layer 0 last.",
            ),
            Answer("Layer 3", "The backward pass starts at the loss, so the last layer is finished first."),
            Answer(
                "All at the same time, when backward() is over",
                "A gradient is finished as soon as the backward pass has gone through its layer.",
            ),
            Answer(
                "It differs from run to run, and from rank to rank",
                "It is the order of the graph. In a chain of layers there is only one.",
            ),
        ),
        right=1,
    ),
    Choose(
        name="dp_first_buckets",
        topic="DDP",
        text="DDP gets 12 layers of 256 KiB and `bucket_cap_mb=1`; every other option keeps its default. How many "
        "buckets leave in the very first backward pass, and how many in the second?",
        answers=(
            Answer("1, then 3", "Before it has seen the order of the gradients DDP keeps them in one bucket."),
            Answer(
                "3, then 3", "In the second, yes. Before the first, DDP has not seen in which order gradients come."
            ),
            Answer("12, then 3", "DDP never sends single parameters, unless one fills a bucket by itself."),
            Answer("12, then 12", "A bucket of 1 MiB has room for four of these layers."),
        ),
        right=0,
    ),
    Number(
        name="dp_bucket_best",
        topic="estimate",
        text="16 layers, 25 ms of backward for each, 24 ms of latency for an all_reduce, 24.6 ms for the bytes of each "
        "layer. The first bucket leaves after k layers of backward. From then on the network carries one bucket after "
        "the other, 16/k in all, and is never idle. Which k is fastest?",
        right=Answer(
            "4",
            "k x 25 ms until the first bucket leaves, and 16/k x 24 ms of latency. Their sum is smallest where both "
            "are about equal: k = 4.",
        ),
        wrong=(
            Answer("1", "The first gradient leaves at once, but 16 calls pay 16 x 24 ms of latency in a row."),
            Answer(
                "16", "One call pays 24 ms of latency, but leaves only when the whole backward pass has ended: 400 ms."
            ),
            Answer(
                "8",
                "The first bucket leaves after 200 ms, 100 ms later than with 4, and two calls saved are only 48 ms.",
            ),
            Answer("2", "The first bucket leaves 50 ms earlier than with 4, but 4 more calls cost 96 ms."),
        ),
        unit="layers",
        within=0.05,
    ),
    Statement(
        name="dp_no_sync",
        topic="DDP",
        text="Four small batches, one optimizer step. With `no_sync` around the first three DDP sends a quarter of the "
        "bytes, and ends with the same gradients, up to rounding.",
        true=True,
        why="Adding over batches and averaging over ranks can be done in either order. So each rank adds its own four "
        "first, and all ranks all-reduce once.",
    ),
    Statement(
        name="dp_one_slow",
        topic="stragglers",
        text="No overlap. One rank of four takes 60 ms longer for its backward pass. Each step becomes only 15 ms "
        "longer, because the delay is spread over four ranks.",
        true=False,
        why="No rank has the average before the last gradient has come. All four wait, and the step is 60 ms longer.",
    ),
    Choose(
        name="dp_who_is_slow",
        topic="stragglers",
        text="You look at how long each rank waited for the others after its backward pass: rank 0 180 ms, rank 1 183 "
        "ms, rank 2 31 ms, rank 3 179 ms. Which part is slow?",
        answers=(
            Answer("Ranks 0, 1 and 3", "They wait because they are done. The rank that waits longest was done first."),
            Answer("Rank 2", "The rank with the shortest wait came last: the others were waiting for it."),
            Answer("The network", "Then all would wait about equally long: they are in the same all_reduce."),
            Answer(
                "Nothing: such numbers are noise",
                "Three ranks agree, and wait 150 ms longer than the fourth: that is not noise.",
            ),
        ),
        right=1,
    ),
    FindLine(
        name="dp_largest_first",
        topic="diagnose",
        text="A colleague averages the largest gradients first, because they matter most. No error, but the model "
        "learns badly. Which line is wrong?",
        source="""
def step(model, x):
    model.zero_grad()
    loss_of(model, x).backward()
    order = sorted(model.parameters(), key=lambda p: -p.grad.abs().max())
    for p in order:
        dist.all_reduce(p.grad)
        p.grad /= world_size
""",
        right=(4,),
        why="Each rank sorts by its own gradients, so the orders differ. Call number 1 adds layer 2 of one rank to "
        "layer 0 of another. The shapes are equal, so no error is raised.",
        wrong=(
            Answer("1", "This line only names the function and its arguments."),
            Answer("2", "Old gradients have to go: `backward` adds to what is there."),
            Answer("3", "Each rank has its own data, and its own loss. That is as it should be."),
            Answer("5", "Going through a list is fine, if all ranks have the same list."),
            Answer("6", "The call is right. It adds whatever the ranks pass in their first, second ... call."),
            Answer("7", "A sum divided by the number of ranks is the mean."),
        ),
    ),
    FindLine(
        name="dp_no_handle",
        topic="diagnose",
        text="Overlap by hand. The loss falls, but differently in every run, and the ranks drift apart. Which line is "
        "to blame?",
        source="""
def start(p):
    p.grad /= world_size
    dist.all_reduce(p.grad, async_op=True)

for p in model.parameters():
    p.register_post_accumulate_grad_hook(start)

for x in batches:
    model.zero_grad()
    loss_of(model, x).backward()
    optimizer.step()
""",
        right=(3,),
        why="The handle is dropped, so nothing can wait for it. `optimizer.step()` uses gradients that are still being "
        "summed, and at that moment each rank has a different part of the sum.",
        wrong=(
            Answer("2", "Dividing before the sum is fine: the result is still the mean."),
            Answer("5", "Every parameter needs its hook."),
            Answer("6", "This hook runs when the gradient is finished: just right."),
            Answer("9", "Old gradients have to go before the next pass."),
            Answer("10", "The hooks run in here. That is what makes it overlap."),
            Answer(
                "11",
                "It comes too early only because nothing above it waits. With the handles kept, the wait would come "
                "right before it.",
            ),
        ),
    ),
    Statement(
        name="dp_sends_weights",
        topic="DDP",
        text="DDP keeps the models alike by averaging their weights after each step.",
        true=False,
        why="It broadcasts rank 0's parameters once, when it is made. After that parameters never travel, only their "
        "gradients: equal starts and equal steps stay equal.",
    ),
    Statement(
        name="dp_same_gradients",
        topic="data parallel",
        text="The bucket size changes neither the averaged gradients (up to rounding) nor the number of bytes that "
        "each rank sends.",
        true=True,
        why="A bucket is only an envelope: the same numbers are added, and each rank sends 2 (p - 1)/p times all of "
        "them. What differs is the number of calls, and when they leave.",
    ),
)
