// MpiExchange: the devices of a mesh are driven by the processes of an MPI job, one each.
//
// MPI itself never notices a peer that is gone: a collective waits forever. So every exchange has a deadline, and begins with a
// short message to each peer; when the deadline passes, the peers whose message is missing are named.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "mesh/exchange.h"
#include "mesh/mpi_library.h"

namespace tenon::mesh {

class MpiExchange final : public Exchange {
 public:
  // Collective: tells every process the others' names. |mesh| has a place for each process and outlives this.
  MpiExchange(MpiLibrary& mpi, const Mesh& mesh, std::chrono::nanoseconds deadline, std::stop_token cancel,
              const std::string& name);

  HostArray reduce(const HostArray& mine, const Layout& from, const Layout& to, const Shape& shape) override;
  HostArray move(const HostArray& mine, const Layout& from, const Layout& to, const Shape& shape) override;
  std::uint64_t take_bytes() override;

  // The host of each process.
  const std::vector<std::string>& names() const noexcept { return names_; }
  // Waits until all processes are here; each gets the texts of all, in order of rank.
  std::vector<std::string> gather(const std::string& text);
  // Runs |action| on all processes, one after the other, in the order of |turn|, and waits until all have done it: for as long
  // as the one whose turn it is shows signs of life.
  void in_turn(const std::vector<int>& turn, const std::function<void()>& action);

 private:
  struct Message {
    int peer = 0;
    HostArray data;  // to be sent; or received
  };
  using Clock = std::chrono::steady_clock;

  void begin(const std::vector<int>& peers);
  void wait(std::vector<MpiLibrary::Request> requests);
  void take_turn(const std::function<void()>& action);
  void wait_for_turn_of(int member);
  void tell_all(std::int32_t word);
  void exchange(const std::vector<Message>& sends, std::vector<Message>& receives);
  std::vector<std::string> missing_peers() const;
  [[noreturn]] void fail_cancelled() const;
  [[noreturn]] void fail_late() const;
  HostArray reduce_all(const HostArray& mine, ReduceKind kind, const std::vector<int>& axes, const std::vector<int>& group);
  void make_groups();
  HostArray reduce_parts(const HostArray& mine, ReduceKind kind, const std::vector<int>& group, const Layout& from,
                         const Layout& to, const Shape& shape);

  MpiLibrary& mpi_;
  const Mesh& mesh_;
  const std::chrono::nanoseconds deadline_;
  std::stop_token cancel_;
  std::vector<std::string> names_;
  std::map<std::vector<int>, MpiLibrary::Group> groups_;  // by axes of the mesh
  std::uint64_t bytes_ = 0;
  int sequence_ = 0;  // of exchanges: the same on all processes
  Clock::time_point began_;
  // Of the present exchange: the peers, and the requests of their first messages; -1: it has come.
  std::vector<int> peers_;
  std::vector<MpiLibrary::Request> arrivals_;
  std::vector<std::int32_t> arrived_;
  std::int32_t mark_ = 0;
};

}  // namespace tenon::mesh
