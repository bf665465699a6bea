// Exchange: what the devices of a mesh give each other, seen from one of them.
//
// Every device calls the same functions in the same order, one at a time. All wait until every device has called; a device that
// failed ends the wait of all others with abort().
#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "mesh/plan/layout.h"
#include "tenon/array.h"

namespace tenon::mesh {

class Exchange {
 public:
  virtual ~Exchange() = default;
  // |mine| is this device's part of a value of |shape| in the layout |from|; returns its part in the layout |to|. The layouts
  // differ in the axes that are partial, and, for those, in splits that are whole in |from|. Between the devices of
  // one process terms are added in the order of the devices, so every run gives the same bits.
  virtual HostArray reduce(const HostArray& mine, const Layout& from, const Layout& to, const Shape& shape) = 0;
  // The layouts differ in their splits.
  virtual HostArray move(const HostArray& mine, const Layout& from, const Layout& to, const Shape& shape) = 0;
  // What all devices say, in the order of ranks.
  virtual std::vector<std::string> gather(const std::string& text) = 0;
  // Bytes that this device received from others since the last call.
  virtual std::uint64_t take_bytes() = 0;
  // From any thread: ends the present and every future wait of this device with an exception, cancelled.
  virtual void stop() noexcept = 0;
};

// Devices of one process, each driven by a thread of its own, exchanging through host memory.
class Meeting {
 public:
  explicit Meeting(const Mesh& mesh);
  ~Meeting();
  std::unique_ptr<Exchange> exchange(int rank);
  // Ends every present and future wait with an exception: cancelled.
  void abort();

  struct State;

 private:
  std::shared_ptr<State> state_;
};

// The part |wanted| of an array that holds the part |have|: shares the bytes if it is all of it or some of its rows.
HostArray cut(const HostArray& array, const Box& have, const Box& wanted);
// Copies what both boxes have from |source|, which holds |from|, to |target|, which holds |to|; returns the bytes.
std::uint64_t copy_common(const HostArray& source, const Box& from, std::byte* target, const Box& to);
// target[i] = target[i] (kind) source[i]. The dtype is not a block format.
void accumulate(ReduceKind kind, DType dtype, std::byte* target, const std::byte* source, std::int64_t elements);

}  // namespace tenon::mesh
