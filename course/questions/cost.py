"""The questions of chapter 6: seconds from messages and bytes, on paper first."""

from course.questions.question import Answer, Choose, Click, Number, Statement

QUESTIONS = (
    Number(
        name="long_message",
        topic="cost",
        text="A link has alpha = 20 microseconds and carries 2 GB/s. How long does a message of 4 MB "
        "take? Write the unit, too.",
        right=Answer(
            "20e-6+4e6/2e9",
            "20 microseconds to start, and 4 MB / (2 GB/s) = 2 ms for the bytes. A message of 4 bytes takes 20.002 "
            "microseconds. This one has a million times the bytes and takes only a hundred times as long.",
        ),
        wrong=(
            Answer("20e-6", "That is the start alone. The bytes take 4 MB / (2 GB/s) = 2 ms more."),
            Answer("20e-6+8*4e6/2e9", "That counts bits. The link's speed is in bytes per second, GB and not Gbit."),
            Answer("20e-6+4e3/2e9", "That is a message of 4 kB. 4 MB are 4 million bytes."),
            Answer("20e-6+4e6*2e-9", "That takes 2 ns for a byte. At 2 GB/s a byte takes half a nanosecond."),
        ),
        unit="s",
        within=0.02,
    ),
    Number(
        name="half_latency",
        topic="cost",
        text="On the same link, at which size does alpha make up exactly half of the time of a message?",
        right=Answer("40e3", "The bytes must take 20 microseconds, too: 20 microseconds x 2 GB/s. It is alpha/beta."),
        wrong=(
            Answer("20e3", "20 kB take 10 microseconds: then alpha is two thirds of the time."),
            Answer("80e3", "80 kB take 40 microseconds: then alpha is a third of the time."),
            Answer("320e3", "You multiplied by 8. GB/s already counts bytes."),
            Answer("5e3", "You divided by 8. GB/s already counts bytes."),
        ),
        unit="bytes",
        within=0.02,
    ),
    Number(
        name="bucket_times",
        topic="cost",
        text="4 ranks, a ring over InfiniBand with Simple: alpha = 14 microseconds, 50 GB/s. Llama 3.2 1B has two "
        "norms in each of its 16 layers, and one at the end. The gradient of each has 2,048 float32 numbers, 8.2 kB. "
        "Plan A calls all_reduce for each. Plan B joins the 33 into one tensor and calls it once. By what factor is A "
        "slower?",
        right=Answer(
            "33*6*(14+0.04096)/(6*(14+33*0.04096))",
            "A: 33 x 6 steps of 14 + 0.04 microseconds. B: 6 steps of 14 + 1.35.",
        ),
        wrong=(
            Answer("1", "The bytes are the same, but A has 33 times as many starts, of 14 microseconds each."),
            Answer("33", "A has 33 times as many steps, but those of B are longer: 14 + 1.35 microseconds."),
            Answer("198", "A has 198 steps, but B has 6 of its own: one call, 6 steps."),
        ),
        unit="times",
        p=4,
        within=0.05,
    ),
    Click(
        name="two_shot_first",
        topic="all_reduce",
        text="In the first shot rank r collects chunk r of every other rank. Which cell on each rank does this change? "
        "Click it.",
        step=1,
        why="Rank 2 needs chunk 2 of every other rank and nothing else, so chunk 2 changes there. On rank r it is "
        "chunk r.",
    ),
    Number(
        name="one_two_crossing",
        topic="cost",
        text="One-shot costs 3 alpha + 3 N beta, two-shot 6 alpha + 1.5 N beta. InfiniBand's alpha/beta is 700 kB. At "
        "which N do they take the same time?",
        right=Answer(
            "1.4e6", "3 alpha = 1.5 N beta, so N = 2 alpha/beta: twice the critical size, in slow motion, too."
        ),
        wrong=(
            Answer("0.7e6", "That is alpha/beta. Here 3 alpha = 1.5 N beta, so N is twice that."),
            Answer("2.8e6", "You took 6 alpha. The difference of the two is 3 alpha: 3 alpha = 1.5 N beta."),
            Answer("0.35e6", "You divided by 2. 3 alpha = 1.5 N beta, so N = 3/1.5 alpha/beta."),
        ),
        unit="bytes",
        within=0.03,
    ),
    Choose(
        name="slow_link",
        topic="cost",
        text="Find the slow link. Every rank has one link to the switch (what it sends) and one from it (what it "
        "receives). Which of the eight has only a tenth of the bandwidth?",
        answers=(
            Answer("what rank 2 sends", "Then everything FROM rank 2 would be slow: its row. Look at the columns."),
            Answer("what rank 3 receives", "What ranks 0 and 1 send to rank 3 is fast."),
            Answer(
                "what rank 1 sends", "Rank 1 is slow to one rank only; to ranks 0 and 3 it is as fast as the others."
            ),
            Answer(
                "what rank 2 receives",
                "Whatever is sent TO rank 2 is slow, whichever rank sends it, and nothing else is.",
            ),
        ),
        right=3,
    ),
    Number(
        name="estimate_gradients",
        topic="estimate",
        text="Llama 3 8B has 8 billion parameters, and each gradient takes 2 bytes. 16 GPUs, one in each machine, "
        "all-reduce them by a ring, over NICs of 50 GB/s in each direction. How long does it take, without latency?",
        right=Answer("2*(p-1)/p*16/50", "N = 16 GB. Each rank sends 2 (p - 1)/p N = 30 GB at 50 GB/s."),
        wrong=(
            Answer(
                "(p-1)/p*16/50",
                "Half of the right answer. Did you take one byte per gradient, or only half of the ring?",
            ),
            Answer("16/50", "That is N at 50 GB/s. The ring sends nearly 2 N: 2 (p - 1)/p times N."),
            Answer(
                "2*(p-1)*16/50",
                "That is what all 16 ranks send, over one NIC. Each sends a sixteenth of it over its own.",
            ),
            Answer("8*2*(p-1)/p*16/50", "That counts bits. The NIC's 50 GB/s are bytes (it is sold as 400 Gbit/s)."),
        ),
        unit="s",
        p=16,
        within=0.03,
    ),
    Number(
        name="estimate_overlap",
        topic="estimate",
        text="Each of the 32 layers of Llama 3 8B has 436 MB of gradients. The backward pass computes 20 ms for a "
        "layer (8,192 tokens on an H100). As soon as the gradients of a layer are ready, their all-reduce starts. "
        "It takes 16.8 ms on the NICs of the last question. How long is it from the start of the backward pass until "
        "the last layer is summed?",
        right=Answer(
            "32*20e-3+16.8e-3",
            "20 ms are longer than 16.8, so 31 layers travel while the GPU still computes. The last one is ready at "
            "640 ms and cannot hide.",
        ),
        wrong=(
            Answer(
                "32*(20e-3+16.8e-3)", "That is one after the other. 31 of the 32 layers travel while the GPU computes."
            ),
            Answer("32*20e-3", "The last layer is ready only when the backward pass is over. Its 16.8 ms come on top."),
            Answer("32*16.8e-3", "That is the messages alone. The computing alone takes 640 ms."),
        ),
        unit="s",
        within=0.01,
    ),
    Number(
        name="estimate_busbw",
        topic="estimate",
        text="An all_reduce of 8.59 GB on 8 GPUs takes 158.07 ms. What is its busbw?",
        right=Answer(
            "2*(p-1)/p*8.59e9/158.07e-3",
            "algbw is 54.34 GB/s; the factor of all_reduce on 8 ranks is 7/4. NCCL runs a ring for each of a machine's "
            "four NICs: 24 GB/s on each.",
        ),
        wrong=(
            Answer("8.59e9/158.07e-3", "That is algbw. For all_reduce it is multiplied by 2 (p - 1)/p = 7/4."),
            Answer(
                "(p-1)/p*8.59e9/158.07e-3", "That is the factor of reduce_scatter, one half. all_reduce has two halves."
            ),
            Answer("2*(p-1)*8.59e9/158.07e-3", "That is what all 8 ranks send together. busbw is about one of them."),
        ),
        unit="bytes/s",
        p=8,
        within=0.01,
    ),
    Statement(
        name="busbw_measured",
        topic="cost",
        text="busbw is the measured speed of the links.",
        true=False,
        why="It is just the time T, written in another way: N / T times a constant of the collective. An algorithm "
        "that sends more bytes than it must shows a low busbw on links that are fully busy.",
    ),
    Statement(
        name="algbw_falls",
        topic="cost",
        text="A ring all-reduce without latency runs on more and more ranks, over equal links. Its algbw falls.",
        true=True,
        why="Each rank has to send 2 (p - 1)/p N, which grows from 1 N to nearly 2 N. So the same N takes longer. "
        "busbw has that factor in it, and stays.",
    ),
    Statement(
        name="reduce_scatter_half",
        topic="cost",
        text="reduce_scatter is one half of a ring. So on your ranks dist.reduce_scatter_single takes about half as "
        "long as dist.all_reduce of the same vector.",
        true=False,
        why="By the count it is half, and NCCL's ring keeps that. gloo, which your ranks use, does a "
        "whole all-reduce inside and throws most of it away. A formula is about an algorithm; "
        "your library may run another.",
    ),
    Number(
        name="estimate_token",
        topic="estimate",
        text="65.5 kB on 8 GPUs, a ring with LL: 0.6 microseconds for a message, 225 GB/s. How long does one "
        "all-reduce take?",
        right=Answer(
            "2*(p-1)*(0.6+65.5/p/225)*1e-6",
            "14 steps of 0.6 microseconds are 8.4, and the bytes add 0.5. (To start the call at all NCCL counts 6.6 "
            "more.) With Simple the ring would take 48 microseconds.",
        ),
        wrong=(
            Answer(
                "2*(p-1)/p*65.5/225*1e-6",
                "Those are the bytes alone. 14 steps have to start, too: 0.6 microseconds each.",
            ),
            Answer(
                "(0.6+2*(p-1)/p*65.5/225)*1e-6",
                "That starts one message. The ring has 2 (p - 1) = 14 steps, one after the other.",
            ),
            Answer(
                "(p-1)*(0.6+65.5/p/225)*1e-6",
                "That is one half of the ring. After the reduce-scatter comes the all-gather.",
            ),
            Answer("2*(p-1)*(0.6+65.5/225)*1e-6", "That sends all of N in each step. A step of the ring sends N/p."),
            Answer("2*(p-1)*(3.4+65.5/p/450)*1e-6", "That is Simple. LL starts faster and has half the bandwidth."),
        ),
        unit="s",
        p=8,
        within=0.02,
    ),
)
