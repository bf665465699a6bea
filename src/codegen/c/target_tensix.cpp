// The tensix dialect: C++ for the data-movement processors of a Tenstorrent chip (32-bit RISC-V without a float unit, whose
// compiler's software floats follow IEEE 754 to the bit).
//
// A processor reaches DRAM only by transfers to and from its core's memory (L1). Global<T> stands for a pointer: it keeps a few
// lines of its buffer in L1, chosen by the low bits of their number, and sends back exactly the bytes that the kernel wrote, so
// two processors may write to different parts of one line. Source and destination of a transfer must have equal low address bits,
// which holds because a line lies in L1 as it does in DRAM.
//
// With TENON_HOST defined, the same text is plain C++: DRAM is memory of the process (stand-in of the tests).
#include "codegen/c/math_library.h"
#include "codegen/c/target.h"

namespace tenon {
namespace {

constexpr std::string_view kTypes = R"kernel(#pragma GCC optimize("no-fast-math")
#ifndef TENON_HOST
#if __has_include("api/dataflow/dataflow_api.h")
#include "api/dataflow/dataflow_api.h"
#else
#include "dataflow_api.h"
#endif
#endif
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32; typedef unsigned long long u64;
typedef signed char i8; typedef short i16; typedef int i32; typedef long long i64; typedef float f32; typedef double f64;
#define DEVICE [[maybe_unused]] static inline
#define KERNEL(x, y, z) static void
#define VECTORIZE
#define ANY_ORDER
#define UNROLL
#define WIDE f64
#define RECIPROCAL(x) (1.0f / (x))
#define HIGH_PRODUCT(x, y) (u32)((u64)(x) * (y) >> 32)
#define LARGER(a, b) ((a) > (b) || (a) != (a) ? (a) : (b))
#define SMALLER(a, b) ((a) < (b) || (a) != (a) ? (a) : (b))
template <class To, class From> DEVICE To same_bits(From from) {
  To to;
  static_assert(sizeof to == sizeof from, "");
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}
#define AS_U32(x) same_bits<u32>((f32)(x))
#define AS_I32(x) same_bits<i32>((f32)(x))
#define AS_F32(x) same_bits<f32>((u32)(x))
#define AS_U64(x) same_bits<u64>((f64)(x))
#define AS_I64(x) same_bits<i64>((f64)(x))
#define AS_F64(x) same_bits<f64>((u64)(x))
)kernel";

constexpr std::string_view kMemory = R"kernel(
#define LINE_BYTES 1024u
#ifdef TENON_HOST
typedef unsigned long Address;
static u8* const* host_buffers;
static const u32* host_lines;
extern "C" void tenon_bind(u8* const* buffers, const u32* lines) {
  host_buffers = buffers;
  host_lines = lines;
}
DEVICE u8* host_line(u32 buffer, u32 line) {
  if (line >= host_lines[buffer]) __builtin_trap();
  return host_buffers[buffer] + (u64)line * LINE_BYTES;
}
DEVICE void read_line(u32 buffer, u32 line, Address to) {
  const u8* from = host_line(buffer, line);
  for (u32 i = 0; i < LINE_BYTES; ++i) ((u8*)to)[i] = from[i];
}
DEVICE void write_line(u32 buffer, u32 line, Address from, u32 begin, u32 end) {
  u8* to = host_line(buffer, line);
  for (u32 i = begin; i < end; ++i) to[i] = ((const u8*)from)[i];
}
#else
typedef u32 Address;
// The C library's functions report errors through this; its own version needs more memory than a processor has.
extern "C" int* __errno() { static int value; return &value; }
DEVICE void read_line(u32 buffer, u32 line, Address to) {
  const InterleavedAddrGen<true> tensor = {.bank_base_address = buffer, .page_size = LINE_BYTES};
  noc_async_read(tensor.get_noc_addr(line), to, LINE_BYTES);
  noc_async_read_barrier();
}
DEVICE void write_line(u32 buffer, u32 line, Address from, u32 begin, u32 end) {
  const InterleavedAddrGen<true> tensor = {.bank_base_address = buffer, .page_size = LINE_BYTES};
  // A load waits for the stores before it.
  (void)*(volatile u8*)(from + end - 1);
  noc_async_write(from + begin, tensor.get_noc_addr(line, begin), end - begin);
  noc_async_write_barrier();
}
#endif

struct CachedSlot {
  u32 line;  // ~0: none
  u16 begin, end;  // what was written and not yet sent back
};
struct CachedLines {
  u32 buffer, mask;
  CachedSlot* slots;
  Address first;

  void reset() const {
    for (u32 i = 0; i <= mask; ++i) slots[i] = CachedSlot{~0u, 0, 0};
  }
  void send_back(u32 i) const {
    CachedSlot& slot = slots[i];
    if (slot.begin < slot.end) write_line(buffer, slot.line, first + i * LINE_BYTES, slot.begin, slot.end);
    slot.begin = slot.end = 0;
  }
  void send_back_all() const {
    for (u32 i = 0; i <= mask; ++i) send_back(i);
  }
  __attribute__((noinline)) void fetch(u32 i, u32 line) const {
    send_back(i);
    read_line(buffer, line, first + i * LINE_BYTES);
    slots[i].line = line;
  }
  inline Address place(u64 offset) const {
    const u32 line = (u32)(offset >> 10), i = line & mask;
    if (slots[i].line != line) fetch(i, line);
    return first + i * LINE_BYTES + ((u32)offset & (LINE_BYTES - 1));
  }
  inline void note(u64 offset, u32 bytes) const {
    const u32 i = (u32)(offset >> 10) & mask, begin = (u32)offset & (LINE_BYTES - 1), end = begin + bytes;
    CachedSlot& slot = slots[i];
    // What lies between two written ranges belongs to somebody else, perhaps.
    if (slot.begin < slot.end && (begin > slot.end || end < slot.begin)) send_back(i);
    if (slot.begin == slot.end) {
      slot.begin = (u16)begin;
      slot.end = (u16)end;
    }
    if (begin < slot.begin) slot.begin = (u16)begin;
    if (end > slot.end) slot.end = (u16)end;
  }
};

template <class T> struct CachedElement {
  const CachedLines& lines;
  u64 offset;
  operator T() const { return *(const T*)lines.place(offset); }
  T operator=(T value) const {
    const Address at = lines.place(offset);
    lines.note(offset, sizeof(T));
    *(T*)at = value;
    return value;
  }
  T operator=(const CachedElement& other) const { return *this = (T)other; }
  T operator+=(T value) const { return *this = (T)((T)*this + value); }
};
template <class T> struct Global {
  CachedLines lines;
  CachedElement<T> operator[](i64 i) const { return {lines, (u64)i * sizeof(T)}; }
};
template <class T> struct Global<const T> {
  CachedLines lines;
  T operator[](i64 i) const { return *(const T*)lines.place((u64)i * sizeof(T)); }
};
)kernel";

constexpr std::string_view kLaunch = R"kernel(
static u32 current_group[3], all_groups[3];
#define group_id(d) current_group[d]
#define group_count(d) all_groups[d]
#define local_id(d) 0

// Takes the words of a launch in order.
struct LaunchWords {
  const u32* words;
  Address memory;
  u32 lines, buffers;
  u32 word() { return *words++; }
  u64 two_words() {
    const u64 low = word();
    return low | (u64)word() << 32;
  }
};
template <class T> struct LaunchParameter;
template <class T> struct LaunchParameter<Global<T>> {
  static Global<T> take(LaunchWords& from) {
    const u32 i = from.buffers++;
    const u32 lines = from.lines;
    // All lines of all buffers first, because they must be aligned; then the slots.
    const CachedLines kept = {from.word(), lines - 1, (CachedSlot*)(from.memory + i * lines * sizeof(CachedSlot)), 0};
    return {kept};
  }
  static void begin(Global<T>& x, Address lines_from, u32 i) {
    x.lines.first = lines_from + i * (x.lines.mask + 1) * LINE_BYTES;
    x.lines.reset();
  }
  static void end(const Global<T>& x) { x.lines.send_back_all(); }
};
template <class T> struct NumberParameter {
  static void begin(T&, Address, u32) {}
  static void end(const T&) {}
};
template <> struct LaunchParameter<i32> : NumberParameter<i32> { static i32 take(LaunchWords& from) { return (i32)from.word(); } };
template <> struct LaunchParameter<f32> : NumberParameter<f32> { static f32 take(LaunchWords& from) { return AS_F32(from.word()); } };
template <> struct LaunchParameter<i64> : NumberParameter<i64> { static i64 take(LaunchWords& from) { return (i64)from.two_words(); } };
template <> struct LaunchParameter<f64> : NumberParameter<f64> { static f64 take(LaunchWords& from) { return AS_F64(from.two_words()); } };
template <class T> struct BufferCount { static constexpr u32 count = 0; };
template <class T> struct BufferCount<Global<T>> { static constexpr u32 count = 1; };

template <class... A> struct KernelLaunch {
  KernelLaunch(void (*kernel)(A...), u32 processor, u32 processors, Address lines_from, A... arguments) {
    u32 i = 0;
    ((LaunchParameter<A>::begin(arguments, lines_from, i), i += BufferCount<A>::count), ...);
    const u64 total = (u64)all_groups[0] * all_groups[1] * all_groups[2];
    const u64 first = total * processor / processors, last = total * (processor + 1) / processors;
    for (u64 group = first; group < last; ++group) {
      current_group[0] = (u32)(group % all_groups[0]);
      current_group[1] = (u32)(group / all_groups[0] % all_groups[1]);
      current_group[2] = (u32)(group / all_groups[0] / all_groups[1]);
      kernel(arguments...);
    }
    (LaunchParameter<A>::end(arguments), ...);
  }
};
// |words|: those that all processors share (target.h). |memory| is aligned to 64 bytes.
template <class... A> void launch(void (*kernel)(A...), const u32* words, u32 processor, Address memory) {
  LaunchWords from = {words + 6, memory, words[4], 0};
  all_groups[0] = words[1];
  all_groups[1] = words[2];
  all_groups[2] = words[3];
  const u32 slots = words[5] * words[4] * sizeof(CachedSlot);
  const Address lines_from = memory + (slots + 63) / 64 * 64;
  // Braces: the arguments are taken from left to right.
  KernelLaunch<A...>{kernel, processor, words[0], lines_from, LaunchParameter<A>::take(from)...};
}
#ifdef TENON_HOST
#define TENON_ENTRY(name)                                                                   \
  extern "C" void run_##name(const u32* words, u32 processor, unsigned long memory) {       \
    launch(name, words, processor, memory);                                                 \
  }
#else
// Of each processor: its number, and the circular buffer whose memory it may use.
#define TENON_ENTRY(name)                                                                   \
  void kernel_main() {                                                                      \
    const u32 memory = get_write_ptr(get_arg_val<u32>(1));                                  \
    launch(name, (const u32*)get_common_arg_addr(0), get_arg_val<u32>(0), (memory + 63) / 64 * 64); \
  }
#endif
)kernel";

constexpr std::string_view kMath = R"kernel(
DEVICE f32 exact_fabs(f32 x) { return AS_F32(AS_U32(x) & 0x7fffffffu); }
DEVICE f64 exact_fabs(f64 x) { return AS_F64(AS_U64(x) & 0x7fffffffffffffffull); }
DEVICE f32 exact_copysign(f32 x, f32 y) { return AS_F32((AS_U32(x) & 0x7fffffffu) | (AS_U32(y) & 0x80000000u)); }
DEVICE f64 exact_copysign(f64 x, f64 y) {
  return AS_F64((AS_U64(x) & 0x7fffffffffffffffull) | (AS_U64(y) & 0x8000000000000000ull));
}
// Adding and subtracting 2^23 or 2^52 rounds to an integer.
DEVICE f32 exact_rint(f32 x) {
  const f32 a = exact_fabs(x);
  if (!(a < 8388608.0f)) return x;
  return exact_copysign((a + 8388608.0f) - 8388608.0f, x);
}
DEVICE f64 exact_rint(f64 x) {
  const f64 a = exact_fabs(x);
  if (!(a < 4503599627370496.0)) return x;
  return exact_copysign((a + 4503599627370496.0) - 4503599627370496.0, x);
}
template <class T> DEVICE T exact_trunc(T x) {
  const T a = exact_fabs(x), r = exact_rint(a);
  return exact_copysign(r > a ? r - (T)1 : r, x);
}
template <class T> DEVICE T exact_floor(T x) {
  const T r = exact_rint(x);
  return exact_copysign(r > x ? r - (T)1 : r, x);
}
template <class T> DEVICE T exact_ceil(T x) {
  const T r = exact_rint(x);
  return exact_copysign(r < x ? r + (T)1 : r, x);
}
// The product of two f32 is exact in f64. The sum is rounded to odd, so that rounding it to f32 is the only rounding.
DEVICE f32 exact_fma(f32 x, f32 y, f32 z) {
  const f64 p = (f64)x * (f64)y, c = z, s = p + c, t = s - p, lost = (p - (s - t)) + (c - t);
  u64 bits = AS_U64(s);
  if ((bits >> 52 & 0x7ff) == 0x7ff || lost == 0.0 || (bits & 1)) return (f32)s;
  bits += (lost > 0.0) == (s > 0.0) ? 1 : -1;
  return (f32)AS_F64(bits);
}
DEVICE f64 exact_fma(f64 x, f64 y, f64 z) { return x * y + z; }
// Digit by digit: |bits| of the root, and one more that says whether something is left.
DEVICE f64 exact_sqrt(f64 x) {
  if (!(x > 0.0) || x == AS_F64(0x7ff0000000000000ull)) return x == 0.0 || x != x || x > 0.0 ? x : AS_F64(0x7ff8000000000000ull);
  i32 exponent = (i32)(AS_U64(x) >> 52);
  if (exponent == 0) {
    x *= 18014398509481984.0;  // 2^54
    exponent = (i32)(AS_U64(x) >> 52) - 54;
  }
  u64 rest = (AS_U64(x) & 0xfffffffffffffull) | 0x10000000000000ull;
  exponent -= 1023;
  if (exponent & 1) rest <<= 1;
  u64 root = 0, remainder = 0;
  // 2 bits of the radicand for every bit of the root; 54 bits of it are 53 and the rounding bit.
  for (i32 i = 53; i >= 0; --i) {
    const i32 shift = 52 + (i - 53) * 2;
    const u64 next = shift >= 0 ? rest >> shift & 3 : 0;
    remainder = remainder << 2 | next;
    root <<= 1;
    const u64 trial = root << 1 | 1;
    if (remainder >= trial) {
      remainder -= trial;
      root |= 1;
    }
  }
  const u64 rounded = (root >> 1) + (root & 1);
  const i32 half = exponent >> 1;
  return AS_F64(rounded + ((u64)(half + 1022) << 52));
}
DEVICE f32 exact_sqrt(f32 x) { return (f32)exact_sqrt((f64)x); }
// The remainder of whole numbers of units in the last place.
DEVICE f64 exact_fmod(f64 x, f64 y) {
  const u64 infinite = 0x7ff0000000000000ull;
  u64 a = AS_U64(exact_fabs(x)), b = AS_U64(exact_fabs(y));
  if (a >= infinite || b > infinite || b == 0) return AS_F64(0x7ff8000000000000ull);
  if (a < b) return x;
  i32 ea = (i32)(a >> 52), eb = (i32)(b >> 52);
  a = ea ? (a & 0xfffffffffffffull) | 0x10000000000000ull : a;
  b = eb ? (b & 0xfffffffffffffull) | 0x10000000000000ull : b;
  if (ea == 0) ea = 1;
  if (eb == 0) eb = 1;
  a %= b;
  for (; ea > eb; --ea) {
    a <<= 1;
    if (a >= b) a -= b;
  }
  if (a == 0) return exact_copysign(0.0, x);
  for (; ea > 1 && a < 0x10000000000000ull; --ea) a <<= 1;
  const u64 bits = a < 0x10000000000000ull ? a : (a & 0xfffffffffffffull) | (u64)ea << 52;
  return exact_copysign(AS_F64(bits), x);
}
DEVICE f32 exact_fmod(f32 x, f32 y) { return (f32)exact_fmod((f64)x, (f64)y); }
DEVICE f64 log_gamma(f64 x) {
  i32 sign;
  return __builtin_lgamma_r(x, &sign);
}
#define fabs exact_fabs
#define copysign exact_copysign
#define rint exact_rint
#define trunc exact_trunc
#define floor exact_floor
#define ceil exact_ceil
#define fma exact_fma
#define sqrt exact_sqrt
#define fmod exact_fmod
#define cbrt __builtin_cbrt
#define exp __builtin_exp
#define exp2 __builtin_exp2
#define expm1 __builtin_expm1
#define log __builtin_log
#define log2 __builtin_log2
#define log10 __builtin_log10
#define log1p __builtin_log1p
#define sin __builtin_sin
#define cos __builtin_cos
#define tan __builtin_tan
#define asin __builtin_asin
#define acos __builtin_acos
#define atan __builtin_atan
#define atan2 __builtin_atan2
#define sinh __builtin_sinh
#define cosh __builtin_cosh
#define tanh __builtin_tanh
#define asinh __builtin_asinh
#define acosh __builtin_acosh
#define atanh __builtin_atanh
#define erf __builtin_erf
#define erfc __builtin_erfc
#define pow __builtin_pow
#define lgamma log_gamma
)kernel";

constexpr emit::Helper kHelpers[] = {
    // What rounding took from the product of two numbers of moderate size: there is no fused multiplication.
    {"lost_in_product", "", R"(
DEVICE f64 lost_in_product(f64 x, f64 y, f64 product) {
  const f64 cx = x * 134217729.0, hx = cx - (cx - x), lx = x - hx, cy = y * 134217729.0, hy = cy - (cy - y), ly = y - hy;
  return ((hx * hy - product) + hx * ly + lx * hy) + lx * ly;
}
)"},
    // One processor may overwrite what another one reports; each report is written at once.
    {"resolve", "", R"(
DEVICE i64 resolve(i64 index, i64 extent, const Global<i64>& status) {
  i64 i = index < 0 ? index + extent : index;
  if (i >= 0 && i < extent) return i;
  if ((i64)status[0] == 0) {
    status[0] = 1;
    status[1] = index;
    status[2] = extent;
  }
  return 0;
}
)"},
};

}  // namespace

std::string tensix_prelude() {
  static_assert(kTensixLineBytes == 1024 && kTensixHead == 6 && kTensixSlotBytes == 1024 + 8);
  std::string text(kTypes);
  text += kMemory;
  text += kLaunch;
  text += kMath;
  return text;
}

std::span<const emit::Helper> emit::tensix_helpers() { return kHelpers; }

}  // namespace tenon
