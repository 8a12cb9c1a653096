"""Two GPU programs in PTX, NVIDIA's assembly language, which the driver compiles for its GPU when they are loaded."""

ENTRY = "load"
"""The name of the program in both."""

SPIN = """
.version 7.0
.target sm_60
.address_size 64

.visible .entry load(.param .u64 nanoseconds, .param .u64 result)
{
    .reg .pred more;
    .reg .u64 begin, now, limit;

    ld.param.u64 limit, [nanoseconds];
    mov.u64 begin, %globaltimer;
again:
    mov.u64 now, %globaltimer;
    sub.u64 now, now, begin;
    setp.lt.u64 more, now, limit;
    @more bra again;
    ret;
}
"""
"""Computes nothing for so many nanoseconds."""

_PRODUCT = (
    "    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    " {{c{0}, c{1}, c{2}, c{3}}}, {{a, a, a, a}}, {{b, b}}, {{c{0}, c{1}, c{2}, c{3}}};\n"
)
_CHAINS = 4
"""Products that do not wait for one another."""
_PRODUCTS = "".join(_PRODUCT.format(*range(4 * chain, 4 * chain + 4)) for _ in range(8) for chain in range(_CHAINS))

TENSOR = f"""
.version 7.0
.target sm_80
.address_size 64

.visible .entry load(.param .u64 nanoseconds, .param .u64 result)
{{
    .reg .pred more;
    .reg .u64 begin, now, limit, address;
    .reg .b32 a, b;
    .reg .f32 c<{4 * _CHAINS}>;

    ld.param.u64 limit, [nanoseconds];
    ld.param.u64 address, [result];
    cvt.u32.u64 a, address;
    and.b32 a, a, 0x03ff03ff;
    mov.b32 b, a;
{"".join(f"    mov.f32 c{number}, 0f00000000;" + chr(10) for number in range(4 * _CHAINS))}
    mov.u64 begin, %globaltimer;
again:
{_PRODUCTS}
    mov.u64 now, %globaltimer;
    sub.u64 now, now, begin;
    setp.lt.u64 more, now, limit;
    @more bra again;
{"".join(f"    add.f32 c0, c0, c{number};" + chr(10) for number in range(1, 4 * _CHAINS))}
    st.global.f32 [address], c0;
    ret;
}}
"""
"""Multiplies small matrices on the tensor cores for so many nanoseconds. The result is stored, so that it is needed."""
