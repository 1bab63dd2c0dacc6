"""The questions of chapter 15: all_to_all there and back, tokens and their experts, imbalance, Ulysses and the ring."""

from course.questions.question import Answer, Choose, FindLine, Number, Statement

QUESTIONS = (
    Choose(
        name="experts_way_back",
        topic="all_to_all",
        text="Rank 1 got 1, 1, 1 and 2 tokens from ranks 0 to 3. In the backward pass it has a gradient for each of "
        "these 5 tokens. Where do they have to go?",
        answers=(
            Answer(
                "1, 1, 1 and 2 back to ranks 0 to 3",
                "Each gradient goes back to the rank its token came from. So the two lists of counts swap.",
            ),
            Answer(
                "Nowhere: rank 1's expert made them",
                "The expert's weights are on rank 1. But layers on the senders computed the tokens, and their "
                "backward pass needs these gradients.",
            ),
            Answer(
                "To all ranks, summed: an all_reduce",
                "Each token was sent to one rank, not copied to all. So its gradient comes from one rank.",
            ),
            Answer(
                "To the ranks that rank 1 has sent its own tokens to",
                "Those ranks have the gradients of rank 1's own tokens. A gradient goes to the rank that its token "
                "came from.",
            ),
        ),
        right=0,
    ),
    Choose(
        name="experts_reduce",
        topic="experts",
        text="Each rank has its own expert, and a copy of the router. After the backward pass, which gradients have to "
        "be all-reduced before the optimizer runs?",
        answers=(
            Answer(
                "The router's alone",
                "Its copies saw different tokens, so each has a partial sum. An expert has seen all of its tokens.",
            ),
            Answer(
                "The expert's alone",
                "The expert has seen all of its tokens already. The router's copies saw different ones.",
            ),
            Answer(
                "Both",
                "The expert's gradient is whole: its tokens came from all ranks. Adding gradients of different experts "
                "makes no sense.",
            ),
            Answer("None", "Then the copies of the router drift apart, as the models of chapter 0 did."),
        ),
        right=0,
    ),
    Number(
        name="experts_calls",
        topic="experts",
        text="How many times does each rank call all_to_all_single in one forward and backward pass of this layer?",
        right=Answer("5", "Three forward: counts, tokens, results. Two backward: both exchanges of rows go back."),
        wrong=(
            Answer("2", "Tokens there and back make two. The counts go first, and there is a backward pass."),
            Answer("3", "That is the forward pass: counts, tokens, results."),
            Answer("4", "Two each way, and the counts first: no rank knows yet how many tokens will come."),
            Answer("6", "Counts have no gradient, and in the backward pass both lists are already known."),
        ),
        unit="calls",
        p=4,
    ),
    FindLine(
        name="experts_order",
        topic="experts",
        text="A colleague's layer, with your `exchange`. It runs and every shape is right, but its results are not "
        "those of one process. Which line is wrong?",
        source="""order = choice.argsort()
goes = choice.bincount(minlength=world_size).tolist()
comes = counts_of_the_others(goes)
mine = exchange(x[order], goes, comes)
done = exchange(expert(mine), comes, goes)
return gate[:, None] * done[order]""",
        right=(6,),
        why="done is in the order of x[order]: done[i] belongs to token order[i]. done[order] sorts once more, so "
        "tokens get results of others. Right is y[order] = done, or done[order.argsort()].",
        wrong=(
            Answer(
                "1", "Sorted by expert, as they have to be sent. (It need not be stable: one `order` serves both ways.)"
            ),
            Answer("4", "Sorted tokens, and counts of the same choice: these fit."),
            Answer("5", "On the way back the lists change places, as they do here."),
        ),
    ),
    Choose(
        name="experts_capacity",
        topic="experts",
        text="Expert 2 takes at most 2 tokens from each rank. Rank 0's router wants to send it 4 tokens. What "
        "happens to the other two in GShard and the Switch Transformer?",
        answers=(
            Answer(
                "They wait for the next step",
                "The layers above need all tokens of this step, now.",
            ),
            Answer(
                "No expert sees them; only the residual connection carries them on",
                "x + moe(x) is just x for them. They are called dropped tokens, though they stay in the batch.",
            ),
            Answer(
                "They go to the expert that has room",
                "Some routers try the second-best expert. But its room may be taken, too.",
            ),
            Answer("An error", "It happens in nearly every step of a training run, and the code expects it."),
        ),
        right=1,
    ),
    Number(
        name="experts_skew",
        topic="imbalance",
        text="Four ranks with 64 tokens each. The router sends 40 of each rank's tokens to expert 0, and 8 to each of "
        "the others. How many times as long does the exchange take as with 16 to each? Each rank has one NIC that "
        "sends and receives at the same speed.",
        right=Answer(
            "2.5",
            "Rank 0's NIC receives 3 x 40 tokens instead of 3 x 16. It takes longest, and the layer waits for it.",
        ),
        wrong=(
            Answer("1", "Each rank sends nearly as much as before. Look at what rank 0 receives."),
            Answer(
                "7/6",
                "That is what the senders see: 56 tokens leave ranks 1, 2 and 3 instead of 48. Rank 0 receives 3 x 40.",
            ),
            Answer("4", "That would be so if all 64 went to expert 0: 3 x 64 against 3 x 16."),
            Answer("5", "Rank 0 receives five times as much as each of the others, not as before."),
        ),
        unit="times",
        p=4,
        within=0.03,
    ),
    Number(
        name="experts_bytes",
        topic="estimate",
        text="One MoE layer on 8 GPUs: 4,096 tokens on each, two experts for each token, hidden size 4,096, 2 bytes a "
        "number, perfectly balanced. How many bytes does each GPU send in one forward and backward pass?",
        right=Answer(
            "4*(p-1)/p*4096*2*4096*2",
            "Four exchanges of 4096 x 2 rows of 8,192 bytes, 67 MB each. An eighth of each stays on the GPU.",
        ),
        wrong=(
            Answer(
                "2*(p-1)/p*4096*2*4096*2",
                "That is half: one direction only, or one expert for each token. Each row goes there and back in the "
                "forward pass, and again in the backward pass; each token goes to two experts.",
            ),
            Answer("4*4096*2*4096*2", "An eighth of the tokens stays on the GPU: (p - 1)/p of that."),
            Answer(
                "4*2*(p-1)/p*4096*2*4096*2",
                "The extra 2 is that of a ring all_reduce. Here nothing is reduced: each row is sent once.",
            ),
        ),
        unit="bytes",
        p=8,
        within=0.03,
    ),
    Choose(
        name="ulysses_needs",
        topic="ulysses",
        text="A long text is cut among four ranks. Each has the queries, keys and values of its own tokens, for all "
        "eight heads. What must a rank hold to compute attention with no further communication?",
        answers=(
            Answer(
                "Its own tokens, all heads: it has that already",
                "A token looks at all tokens before it, and most of those are on other ranks.",
            ),
            Answer(
                "All tokens, of two heads",
                "A head needs every token, and nothing of the other heads. Two heads on each of four ranks are all "
                "eight.",
            ),
            Answer(
                "A quarter of the tokens, of two heads",
                "Then each head would see a quarter of the text.",
            ),
            Answer(
                "All tokens, all heads: an all_gather",
                "It works (Llama 3 does it), but each rank then holds the keys and values of all eight heads. With two "
                "heads per rank you need a quarter.",
            ),
        ),
        right=1,
    ),
    Statement(
        name="ulysses_myth_heads",
        topic="ulysses",
        text="32 query heads share 8 key-value heads (GQA). Without copying key-value heads, Ulysses works on up to "
        "32 ranks.",
        true=False,
        why="A rank needs at least one whole head of keys and values, and there are 8: at most 8 ranks. With 16 ranks "
        "each of those heads has to be copied to two ranks, which costs bytes and memory.",
    ),
    Number(
        name="cp_ring_bytes",
        topic="context parallel",
        text="8 ranks, as many heads of keys and values as of queries. In the forward pass Ulysses exchanges q, k, v "
        "and the result; the ring passes k and v on, p - 1 times. By what factor does a rank send more "
        "with the ring?",
        right=Answer(
            "p/2",
            "Count in parts, one rank's share of a tensor. The ring sends two, p - 1 times: 2 (p - 1). Ulysses sends "
            "four, but 1/p of each stays on the rank: 4 (p - 1)/p. So p/2 times as much.",
        ),
        wrong=(
            Answer("1/2", "Two tensors instead of four, but the ring sends them p - 1 times, not once."),
            Answer("(p-1)/2", "Nearly: of each tensor that Ulysses exchanges, 1/p stays on the rank."),
            Answer("p-1", "The ring sends p - 1 times, but two tensors instead of four."),
            Answer("p", "The ring sends two tensors, Ulysses four. So it is half of that."),
        ),
        unit="times",
        p=8,
    ),
)
