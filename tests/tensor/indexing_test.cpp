#include "tenon/tensor/indexing.h"

#include <gtest/gtest.h>

#include <array>

#include "tenon/error.h"
#include "tenon/tensor/functions.h"

namespace tenon {
namespace {

// 0, 1, 2 ... 23 as [2, 3, 4].
Tensor counted() { return reshape(arange(0, 24, 1, DType::i64), {2, 3, 4}); }
Tensor whole(const std::vector<std::int64_t>& values) { return Tensor::from(values); }
Tensor truths(const std::vector<std::int64_t>& values) { return cast(whole(values), DType::boolean); }

std::vector<std::int64_t> values(const Tensor& x) { return x.to_vector<std::int64_t>(); }

TEST(Indexing, SeveralTensorsSelectOneElementForEachOfTheirs) {
  const Tensor y = index(counted(), std::array<Index, 3>{whole({0, 1}), whole({2, -1}), whole({3, 0})});
  EXPECT_EQ(values(y), (std::vector<std::int64_t>{11, 20}));
}

TEST(Indexing, TensorsNextToEachOtherKeepTheirPlace) {
  const Tensor y = index(counted(), std::array<Index, 3>{Slice(), whole({0, 2}), whole({1, 3})});
  EXPECT_EQ(y.shape(), (Shape{2, 2}));
  EXPECT_EQ(values(y), (std::vector<std::int64_t>{1, 11, 13, 23}));
}

TEST(Indexing, TensorsApartComeFirst) {
  const Tensor y = index(counted(), std::array<Index, 3>{whole({0, 1}), Slice(), whole({1, 3})});
  EXPECT_EQ(y.shape(), (Shape{2, 3}));
  EXPECT_EQ(values(y), (std::vector<std::int64_t>{1, 5, 9, 15, 19, 23}));
}

TEST(Indexing, ANumberBesideATensorCountsAsOne) {
  EXPECT_EQ(index(counted(), std::array<Index, 3>{0, Slice(), whole({1, 3})}).shape(), (Shape{2, 3}));
  EXPECT_EQ(index(counted(), std::array<Index, 2>{0, whole({1, 2})}).shape(), (Shape{2, 4}));
}

TEST(Indexing, AMaskSelectsItsTrueElements) {
  const Tensor y = index(counted(), std::array<Index, 2>{Slice(), truths({1, 0, 1})});
  EXPECT_EQ(y.shape(), (Shape{2, 2, 4}));
  EXPECT_EQ(values(index(counted(), std::array<Index, 1>{counted() > 20})), (std::vector<std::int64_t>{21, 22, 23}));
  EXPECT_EQ(index(counted(), std::array<Index, 1>{counted() > 99}).shape(), (Shape{0}));
}

TEST(Indexing, AMaskOfAnotherShapeIsRefused) { EXPECT_THROW(index(counted(), std::array<Index, 1>{truths({1, 0, 1})}), Error); }

TEST(Indexing, AnIndexOutsideOfOneOfSeveralAxesIsRefused) {
  const Tensor y = index(counted(), std::array<Index, 2>{whole({0, 1}), whole({0, 3})});
  EXPECT_THROW(y.eval(), Error);
}

TEST(Indexing, AssignmentReplacesWhatTheIndexSelects) {
  const Tensor x = arange(0, 6, 1, DType::i64);
  EXPECT_EQ(values(with_index(x, std::array<Index, 1>{Slice::every(2)}, 9)), (std::vector<std::int64_t>{9, 1, 9, 3, 9, 5}));
  EXPECT_EQ(values(with_index(x, std::array<Index, 1>{whole({5, 0})}, whole({7, 8}))),
            (std::vector<std::int64_t>{8, 1, 2, 3, 4, 7}));
  EXPECT_EQ(values(with_index(x, std::array<Index, 1>{x > 3}, 0)), (std::vector<std::int64_t>{0, 1, 2, 3, 0, 0}));
  EXPECT_EQ(values(with_index(x, std::array<Index, 1>{x > 3}, whole({7, 8}))), (std::vector<std::int64_t>{0, 1, 2, 3, 7, 8}));
  EXPECT_EQ(with_index(x, std::array<Index, 1>{0}, 2.5).dtype(), DType::i64);
}

TEST(Indexing, NonzeroGivesOneTensorForEachAxis) {
  const std::vector<Tensor> places = nonzero(tensor({{0, 1, 0}, {2, 0, 3}}));
  ASSERT_EQ(places.size(), 2u);
  EXPECT_EQ(values(places[0]), (std::vector<std::int64_t>{0, 1, 1}));
  EXPECT_EQ(values(places[1]), (std::vector<std::int64_t>{1, 0, 2}));
  EXPECT_THROW(nonzero(Tensor(1)), Error);
}

}  // namespace
}  // namespace tenon
