#include "codegen/c/sort/keys.h"

#include <fmt/format.h>

namespace tenon::emit {

std::string filled(std::string_view text, const std::map<std::string, std::string>& values) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] != '$') {
      result += text[i++];
      continue;
    }
    std::size_t end = i + 1;
    while (end < text.size() && (std::isupper(static_cast<unsigned char>(text[end])) || text[end] == '_')) ++end;
    result += values.at(std::string(text.substr(i + 1, end - i - 1)));
    i = end;
  }
  return result;
}

std::string Keys::functions() const {
  const std::string key = type(), element = stored_type(stored);
  const std::string ones = bits() == 64 ? "0xfffffffffffffffful" : fmt::format("0x{:x}u", (std::uint64_t{1} << bits()) - 1);
  const std::string sign = bits() == 64 ? "0x8000000000000000ul" : fmt::format("0x{:x}u", std::uint64_t{1} << (bits() - 1));
  const std::string flip = descending ? " ^ " + ones : "";
  const std::map<std::string, std::string> names{{"KEY", key},
                                                 {"ELEMENT", element},
                                                 {"ONES", ones},
                                                 {"SIGN", sign},
                                                 {"FLIP", flip},
                                                 {"TO_BITS", bits() == 64 ? "AS_U64" : "AS_U32"},
                                                 {"FROM_BITS", bits() == 64 ? "AS_F64" : "AS_F32"},
                                                 {"INFINITY_BITS", stored == DType::f16 ? "0x7c00u" : "0x7f80u"},
                                                 {"UNSIGNED", fmt::format("u{}", bits())}};
  if (stored == DType::f32 || stored == DType::f64)
    return filled(R"(const auto key_of = [](const $ELEMENT v) -> $KEY {
$KEY u = v == 0 ? ($KEY)0 : $TO_BITS(v);
u ^= u & $SIGN ? $ONES : $SIGN;
return v != v ? ($KEY)$ONES : ($KEY)(u$FLIP);
};
const auto is_ambiguous = [](const $KEY k) -> bool { return k == $ONES || k == ($KEY)($SIGN$FLIP); };
const auto element_of = [](const $KEY k) -> $ELEMENT {
const $KEY u = k$FLIP;
return $FROM_BITS(u & $SIGN ? u ^ $SIGN : u ^ $ONES);
};
)",
                  names);
  if (stored == DType::f16 || stored == DType::bf16)
    return filled(R"(const auto key_of = [](const u16 v) -> u32 {
const u32 size = v & 0x7fffu, u = size == 0 ? 0u : v;
return size > $INFINITY_BITS ? $ONES : (u ^ (u & $SIGN ? $ONES : $SIGN))$FLIP;
};
const auto is_ambiguous = [](const u32 k) -> bool { return k == $ONES || k == ($SIGN$FLIP); };
const auto element_of = [](const u32 k) -> u16 {
const u32 u = k$FLIP;
return (u16)(u & $SIGN ? u ^ $SIGN : u ^ $ONES);
};
)",
                  names);
  std::map<std::string, std::string> integer = names;
  if (!is_signed_integer(stored)) integer["SIGN"] = "0";
  return filled(R"(const auto key_of = [](const $ELEMENT v) -> $KEY { return (($KEY)($UNSIGNED)v ^ $SIGN)$FLIP; };
const auto is_ambiguous = [](const $KEY) -> bool { return false; };
const auto element_of = [](const $KEY k) -> $ELEMENT { return ($ELEMENT)($UNSIGNED)((k$FLIP) ^ $SIGN); };
)",
                integer);
}

std::string group_text() {
  return R"(LOCAL u32 warp_sums[8];
const i32 t = threadIdx.x, lane = t & 31, warp = t >> 5;
const auto total_before = [&](const u32 value, u32& sum) -> u32 {
u32 s = value;
UNROLL for (i32 d = 1; d < 32; d *= 2) { const u32 u = SHUFFLE_UP(s, d); s += lane >= d ? u : 0u; }
BARRIER;
if (lane == 31) warp_sums[warp] = s;
BARRIER;
u32 before = s - value;
sum = 0;
UNROLL for (i32 w = 0; w < 8; ++w) { const u32 part = warp_sums[w]; before += w < warp ? part : 0u; sum += part; }
return before;
};
)";
}

std::string rank_text() {
  return R"(LOCAL u32 counters[8 * 256];
LOCAL u32 digit_starts[256];
const auto rank_keys = [&](const KEY (&key)[ITEMS], u32 (&rank)[ITEMS], const i32 shift) {
BARRIER;
UNROLL for (i32 i = 0; i < 8; ++i) counters[i * 256 + t] = 0;
BARRIER;
u32* const mine = counters + warp * 256;
UNROLL for (i32 k = 0; k < ITEMS; ++k) {
const u32 digit = (u32)(key[k] >> shift) & 255u;
u32 same = 0xffffffffu;
UNROLL for (i32 b = 0; b < 8; ++b) {
const u32 vote = __ballot_sync(0xffffffffu, digit >> b & 1u);
same &= digit >> b & 1u ? vote : ~vote;
}
const u32 before = mine[digit], below = __popc(same & ((1u << lane) - 1u));
__syncwarp();
if (below == 0) mine[digit] = before + __popc(same);
__syncwarp();
rank[k] = before + below;
}
BARRIER;
u32 total = 0, all;
UNROLL for (i32 w = 0; w < 8; ++w) { const u32 c = counters[w * 256 + t]; counters[w * 256 + t] = total; total += c; }
digit_starts[t] = total_before(total, all);
BARRIER;
UNROLL for (i32 k = 0; k < ITEMS; ++k) {
const u32 digit = (u32)(key[k] >> shift) & 255u;
rank[k] += digit_starts[digit] + mine[digit];
}
};
)";
}

}  // namespace tenon::emit
