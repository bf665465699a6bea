#include <numbers>

#include "codegen/stablehlo/functions.h"
#include "codegen/stablehlo/nodes.h"
#include "graph/random.h"

namespace tenon::stablehlo {
namespace {

struct Words {
  Term w[4];  // u32
};

Term words_like(const Term& x, std::uint64_t value) {
  const Shape shape = x.shape();
  return x.writer().splat_bits(value, x.dtype(), shape);
}
Term low(const Term& x) { return convert(x & words_like(x, 0xffffffffu), DType::u32); }
Term high(const Term& x) { return convert(x >> 32, DType::u32); }

// philox4x32 of graph/random.h, for every element of |block|.
Words philox(std::uint64_t seed, const Term& block, RandomStream stream) {
  Term c0 = low(block), c1 = high(block), c2 = words_like(c0, static_cast<std::uint64_t>(stream)), c3 = c0.like(0);
  std::uint32_t k0 = static_cast<std::uint32_t>(seed), k1 = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const Term wide0 = convert(c0, DType::u64), wide2 = convert(c2, DType::u64);
    const Term p0 = wide0 * words_like(wide0, 0xD2511F53u);
    const Term p1 = wide2 * words_like(wide2, 0xCD9E8D57u);
    const Term n0 = high(p1) ^ c1 ^ words_like(c1, k0);
    const Term n2 = high(p0) ^ c3 ^ words_like(c3, k1);
    c1 = low(p1);
    c3 = low(p0);
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

// 53 bits, in [0, 1).
Term unit_double(const Term& low_word, const Term& high_word) {
  const Term whole = (convert(high_word, DType::u64) << 32) | convert(low_word, DType::u64);
  return convert(whole >> 11, DType::f64) * 0x1p-53;
}

Term uniform_f32(std::uint64_t seed, const Term& index) {
  const Words words = philox(seed, index >> 2, RandomStream::uniform_f32);
  const Term which = index & words_like(index, 3);
  Term word = words.w[3];
  for (int i = 2; i >= 0; --i) word = select(which == static_cast<double>(i), words.w[i], word);
  return convert(word >> 8, DType::f32) * 0x1p-24;
}

Term uniform_f64(std::uint64_t seed, const Term& index) {
  const Words words = philox(seed, index >> 1, RandomStream::uniform_f64);
  const Term even = (index & words_like(index, 1)) == 0.0;
  return unit_double(select(even, words.w[0], words.w[2]), select(even, words.w[1], words.w[3]));
}

Term normal_f32(std::uint64_t seed, const Term& index) {
  const Words words = philox(seed, index >> 2, RandomStream::normal_f32);
  const auto has = [](const Term& x, std::uint64_t bit) { return (x & words_like(x, bit)) != 0.0; };
  const Term later = has(index, 2), second = has(index, 1);
  const Term radius = select(later, words.w[2], words.w[0]), angle = select(later, words.w[3], words.w[1]);
  const Term whole = bitcast(convert(radius | words_like(radius, 1), DType::f64), DType::u64);
  const Term v = bitcast(whole & words_like(whole, ~std::uint64_t{0} << 29), DType::f64);  // as exact as a float
  const Term fraction = bitcast(angle << 2, DType::i32) >> 8;
  const Term x = convert(fraction | words_like(fraction, 1), DType::f64) * (0x1p-23 * std::numbers::pi / 4);
  const Term r = sqrt(log(v * 0x1p-32) * -2.0);
  return select(has(angle, 0x80000000u), -r, r) * select(second ^ has(angle, 0x40000000u), sin(x), cos(x));
}

Term normal_f64(std::uint64_t seed, const Term& index) {
  const Words words = philox(seed, index, RandomStream::normal_f64);
  const Term u = unit_double(words.w[0], words.w[1]) + 0x1p-53;
  const Term v = unit_double(words.w[2], words.w[3]);
  return sqrt(log(u) * -2.0) * cos(v * (2 * std::numbers::pi));
}

}  // namespace

Term emit_random(Writer& writer, const Node& node) {
  const RandomAttr& attr = node.as<RandomAttr>();
  const bool is_wide = node.dtype == DType::f64;
  const Term index = iota(writer, DType::u64, {node.shape.elements()}, 0);
  const Term flat = attr.normal ? (is_wide ? normal_f64(attr.seed, index) : normal_f32(attr.seed, index))
                    : is_wide   ? uniform_f64(attr.seed, index)
                                : uniform_f32(attr.seed, index);
  return reshape(convert(flat, is_wide ? DType::f64 : DType::f32), node.shape);
}

}  // namespace tenon::stablehlo
