#include <algorithm>
#include <map>
#include <span>

#include "backends/cpu/kernels/kernels_testing.h"
#include "math/double_functions.h"
#include "ops/elementwise/reference.h"
#include "ops/elementwise/symbolic.h"

namespace tenon::cpu {
namespace {

using namespace testing_kernels;

constexpr double kUlpLimit = 4;
// Two sets of parameters, so that thresholds lie on either side of most values; all of them exact in f32.
constexpr double kParameters[2][4] = {{0.25, 2, 0.5, 1}, {20, 1, 0, 0.125}};

template <class Visit>
void for_each_op(Visit visit) {
  for (int i = 0; i < kElementwiseCount; ++i) visit(static_cast<ElementwiseOp>(i), kElementwiseTraits[i]);
}
ElementwiseKernel kernel(const Kernels& table, ElementwiseOp op, DType dtype) {
  return table.elementwise[static_cast<int>(op)][static_cast<int>(dtype)];
}
bool takes(ValueKinds kinds, DType dtype) {
  if (dtype == DType::boolean) return (kinds & kBools) != 0;
  if (dtype == DType::f32 || dtype == DType::f64) return (kinds & kFloats) != 0;
  return is_integer(dtype) && (kinds & kIntegers) != 0;
}

// The operands of one op: |count| elements each, a condition as bytes.
template <class T>
struct Operands {
  std::vector<std::vector<T>> values;
  std::vector<std::uint8_t> condition;
  std::vector<const void*> pointers;

  template <class Make>
  Operands(const ElementwiseTraits& traits, std::size_t count, Make make) {
    for (int k = 0; k < traits.inputs; ++k) {
      values.push_back(make(count, static_cast<std::uint32_t>(k + 1)));
      // Otherwise the special values would only meet themselves.
      if (k > 0) std::rotate(values.back().begin(), values.back().begin() + 7 * k, values.back().end());
    }
    if (traits.condition)
      for (std::size_t i = 0; i < count; ++i) condition.push_back(i % 3 == 0);
    for (const auto& input : values) pointers.push_back(input.data());
    if (traits.condition) pointers[0] = condition.data();
  }
};

TEST(ElementwiseKernels, AreThereForTheTypesTheTraitsAllowAndNoOthers) {
  for (const Kernels* table : tables())
    for_each_op([&](ElementwiseOp op, const ElementwiseTraits& traits) {
      for (int d = 0; d < kStorageTypes; ++d) {
        const auto dtype = static_cast<DType>(d);
        EXPECT_EQ(kernel(*table, op, dtype) != nullptr, takes(traits.kinds, dtype)) << name(op) << " in " << name(dtype);
      }
    });
}

TEST(ElementwiseKernels, InF32AreWithinFourUlpOfTheReference) {
  constexpr std::size_t count = 20'000;
  std::map<std::string, double> worst;
  for_each_op([&](ElementwiseOp op, const ElementwiseTraits& traits) {
    if (!takes(traits.kinds, DType::f32)) return;
    const Operands<float> in(traits, count, varied_floats);
    Operands<double> wide(traits, count, [](std::size_t n, std::uint32_t) { return std::vector<double>(n); });
    for (std::size_t k = 0; k < in.values.size(); ++k)
      std::copy(in.values[k].begin(), in.values[k].end(), wide.values[k].begin());
    for (const auto& params : kParameters) {
      std::vector<double> exact(count);
      std::vector<std::uint8_t> exact_bool(count), got_bool(count);
      std::vector<float> got(count);
      void* reference = traits.returns_bool ? static_cast<void*>(exact_bool.data()) : exact.data();
      evaluate_block(op, DType::f64, wide.pointers.data(), reference, count, params);
      for (const Kernels* table : tables()) {
        void* out = traits.returns_bool ? static_cast<void*>(got_bool.data()) : got.data();
        kernel(*table, op, DType::f32)(in.pointers.data(), out, count, params);
        if (traits.returns_bool) {
          EXPECT_EQ(got_bool, exact_bool) << name(op) << " on " << table->isa;
          continue;
        }
        int reported = 0;
        for (std::size_t i = 0; i < count && reported < 3; ++i) {
          const double error = ulp_error(got[i], exact[i]);
          double& most = worst[table->isa + std::string(" ") + name(op)];
          most = std::max(most, error);
          const bool same_zero = got[i] != 0 || exact[i] != 0 || std::signbit(got[i]) == std::signbit(exact[i]);
          if (error <= kUlpLimit && same_zero) continue;
          ++reported;
          std::string arguments;
          for (const auto& input : in.values) arguments += ' ' + std::to_string(input[i]);
          ADD_FAILURE() << name(op) << " on " << table->isa << " of" << arguments << ": " << got[i] << ", not " << exact[i]
                        << ": " << error << " ULP";
        }
      }
      if (traits.params == 0) break;
    }
  });
  std::vector<std::pair<double, std::string>> order;
  for (const auto& [op, error] : worst) order.emplace_back(error, op);
  std::sort(order.rbegin(), order.rend());
  for (std::size_t i = 0; i < 12 && i < order.size(); ++i)
    std::printf("             %-24s %.2f ULP\n", order[i].second.c_str(), order[i].first);
}

TEST(ElementwiseKernels, AfterAMultiplyAddAreTheOpOfItsRoundedResult) {
  constexpr std::size_t count = 1024;
  const std::vector<float> x = varied_floats(count, 1), y = varied_floats(count, 2), z = varied_floats(count, 3);
  std::vector<float> inner(count);
  for (std::size_t i = 0; i < count; ++i) inner[i] = std::fma(x[i], y[i], z[i]);
  const void* const operands[] = {x.data(), y.data(), z.data()};
  const void* const operand = inner.data();
  int kernels = 0;
  for (const Kernels* table : tables())
    for_each_op([&](ElementwiseOp op, const ElementwiseTraits&) {
      const auto index = static_cast<int>(op);
      for (ElementwiseKernel fused : {table->after_multiply_add[index], table->streaming_after_multiply_add[index]}) {
        if (fused == nullptr) continue;
        ++kernels;
        for (std::int64_t n = 0; n <= static_cast<std::int64_t>(count); n += n < 70 ? 1 : 477) {
          std::vector<float> wanted(count, 7), storage(count + 32, 7);
          // Streaming stores need whole cache lines.
          float* out = storage.data() + (64 - reinterpret_cast<std::uintptr_t>(storage.data()) % 64) / sizeof(float);
          kernel(*table, op, DType::f32)(&operand, wanted.data(), n, kParameters[0]);
          fused(operands, out, n, kParameters[0]);
          for (std::size_t i = 0; i < count; ++i)
            ASSERT_TRUE(out[i] == wanted[i] || (std::isnan(out[i]) && std::isnan(wanted[i])))
                << name(op) << " on " << table->isa << ", " << n << " elements: " << out[i] << " at " << i << ", not "
                << wanted[i];
        }
      }
    });
  EXPECT_EQ(kernels > 0, tables().back()->after_multiply_add[static_cast<int>(ElementwiseOp::Relu)] != nullptr);
}

TEST(ElementwiseKernels, WithOneElementOnTheRightAreThoseWithMany) {
  const std::vector<float> left = special_floats();
  for (const Kernels* table : tables())
    for (const ElementwiseOp op : {ElementwiseOp::Add, ElementwiseOp::Sub, ElementwiseOp::Mul})
      for (const ElementwiseKernel with_one :
           {table->with_one[static_cast<int>(op)], table->streaming_with_one[static_cast<int>(op)]})
        for (std::size_t n = 0; n <= left.size(); ++n) {
          const float one = left[n % left.size()];
          const std::vector<float> right(left.size(), one);
          std::vector<float> wanted(left.size(), 7), storage(left.size() + 32, 7);
          // Streaming stores need whole cache lines.
          float* out = storage.data() + (64 - reinterpret_cast<std::uintptr_t>(storage.data()) % 64) / sizeof(float);
          const void* const many[] = {left.data(), right.data()};
          const void* const single[] = {left.data(), &one};
          kernel(*table, op, DType::f32)(many, wanted.data(), static_cast<std::int64_t>(n), kParameters[0]);
          with_one(single, out, static_cast<std::int64_t>(n), kParameters[0]);
          table->stream_fence();
          for (std::size_t i = 0; i < left.size(); ++i)
            ASSERT_TRUE(std::bit_cast<std::uint32_t>(out[i]) == std::bit_cast<std::uint32_t>(wanted[i]) ||
                        (std::isnan(out[i]) && std::isnan(wanted[i])))
                << name(op) << "(" << left[i] << ", " << one << ") on " << table->isa << ", " << n << " elements";
        }
}

// A random sample can miss the places where rounding errors happen to add up; these functions are worth more of it.
TEST(ElementwiseKernels, ThatAreHotStayWithinThreeAndAHalfUlpOnAFineGrid) {
  using enum ElementwiseOp;
  for (ElementwiseOp op : {Exp, Log, Tanh, Sigmoid, Gelu, GeluTanh, Silu, Erf, Erfc, Sin, Cos, Expm1, Log1p, LogSigmoid}) {
    std::vector<float> in;
    std::vector<double> wide;
    for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 10'007) {
      in.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
      wide.push_back(static_cast<double>(in.back()));
    }
    const auto n = static_cast<std::int64_t>(in.size());
    std::vector<double> exact(in.size());
    std::vector<float> got(in.size());
    const void* wide_pointer = wide.data();
    evaluate_block(op, DType::f64, &wide_pointer, exact.data(), n, nullptr);
    for (const Kernels* table : tables()) {
      const void* pointer = in.data();
      kernel(*table, op, DType::f32)(&pointer, got.data(), n, nullptr);
      std::size_t worst = 0;
      for (std::size_t i = 0; i < in.size(); ++i)
        if (ulp_error(got[i], exact[i]) > ulp_error(got[worst], exact[worst])) worst = i;
      EXPECT_LE(ulp_error(got[worst], exact[worst]), 3.5) << name(op) << '(' << in[worst] << ") on " << table->isa;
    }
  }
}

// Multiples of y and their neighbours, of quotients with up to 48 bits: a rounded quotient is often an integer that the exact one
// does not reach, or lies beyond the middle between two numbers where the exact integer is the middle.
TEST(ElementwiseKernels, WholeQuotientsAreTheExactOnesRoundedOnce) {
  std::vector<float> x, y;
  std::uint64_t state = 1;
  for (int i = 0; i < 200'000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const auto divisor = static_cast<float>(static_cast<std::int32_t>(state >> 32));
    const double multiple = static_cast<double>(state >> (16 + i % 48)) * static_cast<double>(divisor);
    x.push_back(std::nextafter(static_cast<float>(multiple), i % 3 == 0 ? 0.0f : i % 3 == 1 ? INFINITY : -INFINITY));
    y.push_back(divisor);
  }
  const std::vector<double> wide_x(x.begin(), x.end()), wide_y(y.begin(), y.end());
  const void* const in[] = {x.data(), y.data()};
  const void* const wide[] = {wide_x.data(), wide_y.data()};
  const auto n = static_cast<std::int64_t>(x.size());
  for (ElementwiseOp op : {ElementwiseOp::TruncDiv, ElementwiseOp::FloorDiv}) {
    std::vector<double> exact(x.size());
    std::vector<float> got(x.size());
    evaluate_block(op, DType::f64, wide, exact.data(), n, nullptr);
    for (const Kernels* table : tables()) {
      kernel(*table, op, DType::f32)(in, got.data(), n, nullptr);
      for (std::size_t i = 0; i < x.size(); ++i)
        ASSERT_EQ(got[i], static_cast<float>(exact[i])) << name(op) << '(' << x[i] << ", " << y[i] << ") on " << table->isa;
    }
  }
}

std::vector<double> varied_doubles(std::size_t n, std::uint32_t seed) {
  const std::vector<float> floats = varied_floats(n, seed);
  return {floats.begin(), floats.end()};
}

template <class T>
void expect_same_everywhere(DType dtype, const Kernels& table, std::vector<T> (*make)(std::size_t, std::uint32_t)) {
  constexpr std::int64_t count = 200;
  for_each_op([&](ElementwiseOp op, const ElementwiseTraits& traits) {
    if (!takes(traits.kinds, dtype)) return;
    const std::size_t size = traits.returns_bool ? 1 : sizeof(T);
    const Operands<T> in(traits, count, make);
    std::vector<char> whole(count * size), single(size);
    kernel(table, op, dtype)(in.pointers.data(), whole.data(), count, kParameters[0]);
    for (std::int64_t i = 0; i < count; ++i) {
      std::vector<const void*> at;
      for (int k = 0; k < traits.inputs; ++k)
        at.push_back(static_cast<const char*>(in.pointers[k]) + i * (traits.condition && k == 0 ? 1 : sizeof(T)));
      kernel(table, op, dtype)(at.data(), single.data(), 1, kParameters[0]);
      T a = 0, b = 0;
      std::memcpy(&a, whole.data() + i * size, size);
      std::memcpy(&b, single.data(), size);
      ASSERT_TRUE(std::memcmp(&a, &b, sizeof a) == 0 || (std::isnan(a) && std::isnan(b)))
          << name(op) << " in " << name(dtype) << " on " << table.isa;
    }
  });
}
TEST(ElementwiseKernels, GiveAnElementTheSameResultWhereverItStands) {
  for (const Kernels* table : tables()) {
    expect_same_everywhere(DType::f32, *table, varied_floats);
    expect_same_everywhere(DType::f64, *table, varied_doubles);
  }
}

TEST(ElementwiseKernels, OfF64PastTheCachesAreTheSame) {
  constexpr std::int64_t count = 203;
  for (const Kernels* table : tables())
    for_each_op([&](ElementwiseOp op, const ElementwiseTraits& traits) {
      const ElementwiseKernel streaming = table->streaming_f64[static_cast<int>(op)];
      if (streaming == nullptr) return;
      const Operands<double> in(traits, count, varied_doubles);
      for (std::size_t offset : {0, 1}) {  // from an aligned address, from another
        std::vector<double> wanted(count), storage(count + 16, 77.0);
        double* out = storage.data() + (64 - reinterpret_cast<std::uintptr_t>(storage.data()) % 64) / sizeof(double) + offset;
        kernel(*table, op, DType::f64)(in.pointers.data(), wanted.data(), count, kParameters[0]);
        streaming(in.pointers.data(), out, count, kParameters[0]);
        for (std::size_t i = 0; i < count; ++i)
          ASSERT_TRUE(out[i] == wanted[i] || (std::isnan(out[i]) && std::isnan(wanted[i]))) << name(op) << " on " << table->isa;
      }
    });
}

TEST(ElementwiseKernels, ReadAndWriteNothingBeyondTheirElements) {
  for (const Kernels* table : tables())
    for_each_op([&](ElementwiseOp op, const ElementwiseTraits& traits) {
      for (DType dtype : {DType::f32, DType::f64, DType::i32, DType::u8, DType::boolean}) {
        if (!takes(traits.kinds, dtype)) continue;
        for (std::size_t n = 0; n <= 40; ++n) {
          // Inputs end where their allocation ends: AddressSanitizer would see a read beyond it.
          std::vector<std::vector<char>> inputs;
          std::vector<const void*> pointers;
          for (int k = 0; k < traits.inputs; ++k) {
            inputs.emplace_back(n * (traits.condition && k == 0 ? 1 : element_bytes(dtype)), char{1});
            pointers.push_back(inputs.back().data());
          }
          const std::size_t bytes = n * (traits.returns_bool ? 1 : element_bytes(dtype));
          std::vector<char> out(bytes + 128, char{77});
          kernel(*table, op, dtype)(pointers.data(), out.data() + 64, static_cast<std::int64_t>(n), kParameters[0]);
          const auto untouched = [](char c) { return c == 77; };
          ASSERT_TRUE(std::all_of(out.begin(), out.begin() + 64, untouched) && std::all_of(out.end() - 64, out.end(), untouched))
              << name(op) << " in " << name(dtype) << ", " << n << " elements, on " << table->isa;
        }
      }
    });
}

template <class T>
void expect_exact(
    DType dtype, const Kernels& table, std::vector<T> (*make)(std::size_t, std::uint32_t),
    bool (*is_left_out)(ElementwiseOp) = [](ElementwiseOp) { return false; }) {
  constexpr std::size_t count = 3000;
  for_each_op([&](ElementwiseOp op, const ElementwiseTraits& traits) {
    if (!takes(traits.kinds, dtype) || is_left_out(op)) return;
    const Operands<T> in(traits, count, make);
    std::vector<T> expected(count), got(count);  // large enough for a bool result as well
    evaluate_block(op, dtype, in.pointers.data(), expected.data(), count, kParameters[0]);
    kernel(table, op, dtype)(in.pointers.data(), got.data(), count, kParameters[0]);
    for (std::size_t i = 0; i < count; ++i)
      ASSERT_TRUE(std::memcmp(&got[i], &expected[i], sizeof(T)) == 0 || (got[i] != got[i] && expected[i] != expected[i]))
          << name(op) << " in " << name(dtype) << " on " << table.isa << ": " << +got[i] << ", not " << +expected[i];
  });
}
TEST(ElementwiseKernels, InIntegersAndBoolAreTheReference) {
  for (const Kernels* table : tables()) {
    expect_exact<std::uint8_t>(DType::boolean, *table, [](std::size_t n, std::uint32_t seed) {
      auto values = varied_integers<std::uint8_t>(n, seed);
      for (auto& x : values) x &= 1;
      return values;
    });
    expect_exact(DType::u8, *table, varied_integers<std::uint8_t>);
    expect_exact(DType::u16, *table, varied_integers<std::uint16_t>);
    expect_exact(DType::u32, *table, varied_integers<std::uint32_t>);
    expect_exact(DType::u64, *table, varied_integers<std::uint64_t>);
    expect_exact(DType::i8, *table, varied_integers<std::int8_t>);
    expect_exact(DType::i16, *table, varied_integers<std::int16_t>);
    expect_exact(DType::i32, *table, varied_integers<std::int32_t>);
    expect_exact(DType::i64, *table, varied_integers<std::int64_t>);
  }
}

bool is_own_function(std::string_view function) {
  constexpr std::string_view names[] = {
#define TENON_X(name) #name,
      TENON_OWN_VECTOR_FUNCTIONS(TENON_X) TENON_OWN_LOOKUP_FUNCTIONS(TENON_X)
#undef TENON_X
  };
  return std::ranges::find(names, function) != std::end(names);
}
// Its body calls functions that there are for vectors as well (math_f64.h): not to the last bit those of the reference.
bool calls_functions_of_vectors(ElementwiseOp op) {
  return !traits(op).cancels && std::ranges::any_of(expand(op).nodes, [](const SymbolicNode& node) {
    constexpr std::string_view names[] = {"exp", "exp2",
#ifdef TENON_HAS_VECTOR_FUNCTIONS
                                          "erfinv", "i0",
#define TENON_X(name) #name,
                                          TENON_OWN_VECTOR_FUNCTIONS(TENON_X) TENON_OWN_LOOKUP_FUNCTIONS(TENON_X)
                                              TENON_LIBRARY_VECTOR_FUNCTIONS(TENON_X) TENON_VECTOR_FUNCTIONS_OF_TWO(TENON_X)
#undef TENON_X
#endif
    };
    return std::ranges::find(names, name(node.prim)) != std::end(names);
  });
}
TEST(ElementwiseKernels, InF64AreTheReferenceWhereTheyCallNoFunctionsOfVectors) {
  for (const Kernels* table : tables()) expect_exact(DType::f64, *table, varied_doubles, calls_functions_of_vectors);
}

TEST(ElementwiseKernels, FunctionsOfF64AreWithinFourUlp) {
  using enum ElementwiseOp;
  using Function = long double (*)(long double);
  const std::pair<ElementwiseOp, Function> functions[] = {
      {Exp, std::exp},     {Exp2, std::exp2}, {Expm1, std::expm1}, {Log, std::log},   {Log2, std::log2},   {Log10, std::log10},
      {Log1p, std::log1p}, {Sin, std::sin},   {Cos, std::cos},     {Tan, std::tan},   {Asin, std::asin},   {Acos, std::acos},
      {Atan, std::atan},   {Sinh, std::sinh}, {Cosh, std::cosh},   {Tanh, std::tanh}, {Asinh, std::asinh}, {Acosh, std::acosh},
      {Atanh, std::atanh}, {Cbrt, std::cbrt}, {Erf, std::erf},     {Erfc, std::erfc},
  };
  std::vector<double> in = varied_doubles(20'000, 5);
  // Bits that floats do not have, and the ends of the range.
  for (std::size_t i = 0; i < 20'000; ++i) in.push_back(in[i] * (1 + 1e-9 * static_cast<double>(i)));
  for (int exponent = -1074; exponent < 1024; ++exponent)
    for (double sign : {1.0, -1.0}) in.push_back(std::ldexp(sign * 1.2345678901234567, exponent));
  for (double x = -760; x < 720; x += 0.0371) in.push_back(x);
  // Close to the zeros of sines and cosines, and large angles.
  for (int n = 1; n < 1'100'000; n += n < 1000 ? 1 : 997) in.push_back(n * 1.5707963267948966);
  for (double x : {1.6e6, 1.60001e6, 1e15, 1e22, 0x1p1000}) in.insert(in.end(), {x, -x, std::nextafter(x, 0.0)});
  std::vector<double> got(in.size());
  for (const Kernels* table : tables())
    for (const auto& [op, function] : functions) {
      const void* const pointer = in.data();
      kernel(*table, op, DType::f64)(&pointer, got.data(), static_cast<std::int64_t>(in.size()), nullptr);
      double worst = 0, at = 0;
      for (std::size_t i = 0; i < in.size(); ++i) {
        const long double exact = function(static_cast<long double>(in[i]));
        const auto rounded = static_cast<double>(exact);
        ASSERT_EQ(std::isnan(got[i]), std::isnan(rounded)) << name(op) << '(' << in[i] << ") on " << table->isa;
        if (std::isnan(rounded)) continue;
        if (std::isinf(rounded) || rounded == 0) {
          // The largest number and infinity, the smallest and zero are neighbours; at infinity and zero themselves there are
          // none.
          const bool is_edge = std::isfinite(in[i]) && in[i] != 0 &&
                               (rounded == 0 ? std::abs(got[i]) <= 0x1p-1072 : std::abs(got[i]) >= 0x1.ffffffffffff0p1023);
          ASSERT_TRUE((got[i] == rounded || is_edge) && std::signbit(got[i]) == std::signbit(rounded))
              << name(op) << '(' << in[i] << ") on " << table->isa << ": " << got[i] << ", not " << rounded;
          continue;
        }
        const double unit = std::max(std::ldexp(1.0, std::ilogb(rounded) - 52), 0x1p-1074);
        const double error = static_cast<double>(std::abs(static_cast<long double>(got[i]) - exact)) / unit;
        if (error > worst) worst = error, at = in[i];
      }
      const bool is_own = is_own_function(name(op)) && std::string_view(table->isa) == "x86-64-v4";
      const double limit = op == Exp || op == Exp2 ? 1 : is_own ? 2.5 : kUlpLimit;
      EXPECT_LE(worst, limit) << name(op) << '(' << at << ") on " << table->isa;
    }
}

TEST(ElementwiseKernels, ErfinvAndI0OfF64AreWithinFourUlpOfThoseOfOneNumber) {
  std::vector<double> in = varied_doubles(20'000, 6);
  for (int exponent = -1074; exponent <= 0; ++exponent) in.push_back(std::ldexp(0.9, exponent));
  for (double x = -1; x <= 1; x += 0.00037) in.push_back(x);
  for (double x = -720; x <= 720; x += 0.37) in.push_back(x);
  for (int exponent = 1; exponent < 53; ++exponent) in.push_back(1 - std::ldexp(1.0, -exponent));
  std::vector<double> got(in.size());
  const void* const pointer = in.data();
  for (const Kernels* table : tables())
    for (const ElementwiseOp op : {ElementwiseOp::Erfinv, ElementwiseOp::I0}) {
      kernel(*table, op, DType::f64)(&pointer, got.data(), static_cast<std::int64_t>(in.size()), nullptr);
      for (std::size_t i = 0; i < in.size(); ++i) {
        const double wanted = op == ElementwiseOp::I0 ? i0_of(in[i]) : erfinv_of(in[i]);
        EXPECT_TRUE(got[i] == wanted || (std::isnan(got[i]) && std::isnan(wanted)) ||
                    std::abs(got[i] - wanted) <= std::max(std::abs(wanted) * 0x1p-50, 0x1p-1074))
            << name(op) << '(' << in[i] << ") on " << table->isa << ": " << got[i] << ", not " << wanted;
      }
    }
}

TEST(ElementwiseKernels, FunctionsOfTwoF64AreWithinFourUlpForEveryPairOfSpecialValues) {
  using enum ElementwiseOp;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  std::vector<double> values{0.0, 5e-324, 2.2e-308, 1e-200, 1e-9, 0.3,   0.5,     1.0,
                             1.5, 2.0,    3.0,      7.25,   1e5,  1e200, 1.7e308, infinity};
  for (std::size_t i = 0, n = values.size(); i < n; ++i) values.push_back(-values[i]);
  values.push_back(std::nan(""));
  std::vector<double> x, y;
  for (double a : values)
    for (double b : values) x.push_back(a), y.push_back(b);
  std::vector<double> got(x.size());
  const void* const pointers[] = {x.data(), y.data()};
  for (const Kernels* table : tables())
    for (ElementwiseOp op : {Pow, Atan2}) {
      kernel(*table, op, DType::f64)(pointers, got.data(), static_cast<std::int64_t>(x.size()), nullptr);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double wanted = op == Pow ? std::pow(x[i], y[i]) : std::atan2(x[i], y[i]);
        const bool same = got[i] == wanted && std::signbit(got[i]) == std::signbit(wanted);
        EXPECT_TRUE(same || (std::isnan(got[i]) && std::isnan(wanted)) ||
                    std::abs(got[i] - wanted) <= std::abs(wanted) * 0x1p-50 + 0x1p-1072)
            << name(op) << '(' << x[i] << ", " << y[i] << ") on " << table->isa << ": " << got[i] << ", not " << wanted;
      }
    }
}

template <class T>
void expect_in_place(DType dtype, const Kernels& table, std::vector<T> (*make)(std::size_t, std::uint32_t)) {
  constexpr std::size_t count = 133;
  for_each_op([&](ElementwiseOp op, const ElementwiseTraits& traits) {
    if (!takes(traits.kinds, dtype) || traits.returns_bool) return;
    for (int target = traits.condition ? 1 : 0; target < traits.inputs; ++target) {
      Operands<T> in(traits, count, make);
      std::vector<T> apart(count);
      kernel(table, op, dtype)(in.pointers.data(), apart.data(), count, kParameters[0]);
      kernel(table, op, dtype)(in.pointers.data(), in.values[target].data(), count, kParameters[0]);
      for (std::size_t i = 0; i < count; ++i)
        ASSERT_TRUE(std::memcmp(&in.values[target][i], &apart[i], sizeof(T)) == 0 || apart[i] != apart[i])
            << name(op) << " in " << name(dtype) << " over input " << target << " on " << table.isa;
    }
  });
}
TEST(ElementwiseKernels, MayWriteOverAnInput) {
  for (const Kernels* table : tables()) {
    expect_in_place(DType::f32, *table, varied_floats);
    expect_in_place(DType::i32, *table, varied_integers<std::int32_t>);
    expect_in_place(DType::f64, *table, varied_doubles);
  }
}

TEST(Kernels, AreTheBestThisMachineRunsWithinTheLimitAsked) {
  const char* limit = std::getenv("TENON_ISA");
  if (limit && *limit) GTEST_SKIP() << "TENON_ISA=" << limit;
  EXPECT_EQ(&kernels(), tables().back());
  EXPECT_EQ(kernels_for_level(1), nullptr);
  EXPECT_EQ(kernels_for_level(5), nullptr);
}

// Inputs close to half-way between two integers, and any others.
TEST(ElementwiseKernels, QuantizeAsDoublesDo) {
  constexpr double kLimits[][3] = {{0, -128, 127}, {0, 0, 255}, {3, -128, 127}, {200, 0, 255}, {-128, -128, 127}};
  for (const double scale : {0.01, 0.1, 1.0, 0.25, 1 / 3.0, 0.0078125, 3.9, 1e-6, 7e4, 1e-33, 1e33, 1e-42, 1e60, 1e-60}) {
    std::vector<float> in = varied_floats(5'000, 1);
    for (int i = -420; i <= 420; ++i) {
      float x = static_cast<float>(scale * (i + 0.5));
      for (int k = 0; k < 4; ++k) x = std::nextafter(x, -std::numeric_limits<float>::infinity());
      for (int k = 0; k < 9; ++k, x = std::nextafter(x, std::numeric_limits<float>::infinity())) in.push_back(x);
    }
    for (const auto& [zero, low, high] : kLimits) {
      const double params[] = {scale, zero, low, high};
      const void* const pointers[] = {in.data()};
      for (const Kernels* table : tables()) {
        std::vector<std::uint8_t> got(in.size());
        table->quantize(pointers, got.data(), static_cast<std::int64_t>(in.size()), params);
        for (std::size_t i = 0; i < in.size(); ++i) {
          const double steps = std::min(std::max(std::rint(static_cast<double>(in[i]) / scale) + zero, low), high);
          const int expected = std::isnan(in[i]) ? 0 : static_cast<int>(steps);
          ASSERT_EQ(got[i], static_cast<std::uint8_t>(expected)) << table->isa << " of " << in[i] << " / " << scale;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tenon::cpu
