// MpiExchange: the devices of a mesh are driven by the processes of an MPI job, one each.
//
// MPI itself never notices a peer that is gone: a collective waits forever. So every exchange has a deadline, and begins with a
// short message to each peer; when the deadline passes, the peers whose message is missing are named.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "mesh/exchange/exchange.h"
#include "mesh/exchange/mpi_library.h"

namespace tenon::mesh {

class MpiExchange final : public Exchange {
 public:
  // Collective: tells every process the others' names. |mesh| has a place for each process and outlives this. Processes may
  // have started at different times, so the first meeting may take |start_deadline|.
  MpiExchange(MpiLibrary& mpi, const Mesh& mesh, std::chrono::nanoseconds deadline, std::chrono::nanoseconds start_deadline,
              std::stop_token cancel, const std::string& name);
  ~MpiExchange() override;

  HostArray reduce(const HostArray& mine, const Layout& from, const Layout& to, const Shape& shape) override;
  HostArray move(const HostArray& mine, const Layout& from, const Layout& to, const Shape& shape) override;
  std::uint64_t take_bytes() override;
  void stop() noexcept override { is_stopped_ = true; }

  int rank() const { return mpi_.rank(); }
  // The host of each process.
  const std::vector<std::string>& names() const noexcept { return names_; }
  // Waits until all processes are here; each gets the texts of all, in order of rank.
  std::vector<std::string> gather(const std::string& text) override;
  // Runs |action| on all processes, one after the other, in the order of |turn|, and waits until all have done it: for as long
  // as the one whose turn it is shows signs of life.
  void in_turn(const std::vector<int>& turn, const std::function<void()>& action);

 private:
  struct Message {
    int peer = 0;
    HostArray data;  // to be sent; or received
  };
  // The sign that a peer has come to the present exchange.
  struct Arrival {
    MpiLibrary::Request request = 0;
    bool has_come = false;
  };
  struct InFlight;
  using Clock = std::chrono::steady_clock;

  void take_off();
  void land();
  void begin(const std::vector<int>& peers);
  void wait(std::vector<MpiLibrary::Request> requests);
  void wait_until(const std::function<bool()>& is_done);
  bool all_have_come();
  void take_turn(const std::function<void()>& action);
  void wait_for_turn_of(int member);
  void tell_all(std::int32_t word);
  void exchange(const std::vector<Message>& sends, std::vector<Message>& receives);
  std::vector<std::string> missing_peers();
  [[noreturn]] void fail_cancelled();
  [[noreturn]] void fail_late();
  HostArray reduce_all(const HostArray& mine, ReduceKind kind, const std::vector<int>& axes, const std::vector<int>& group);
  void make_groups();
  HostArray reduce_parts(const HostArray& mine, ReduceKind kind, const std::vector<int>& group, const Layout& from,
                         const Layout& to, const Shape& shape);

  MpiLibrary& mpi_;
  const Mesh& mesh_;
  std::chrono::nanoseconds deadline_;
  std::stop_token cancel_;
  std::atomic<bool> is_stopped_{false};
  std::vector<std::string> names_;
  std::map<std::vector<int>, MpiLibrary::Group> groups_;  // by axes of the mesh
  std::uint64_t bytes_ = 0;
  int sequence_ = 0;  // of exchanges: the same on all processes
  Clock::time_point began_;
  // Of the present exchange: the peers, and the signs that they have come, unless it has none.
  std::vector<int> peers_;
  std::vector<Arrival> arrivals_;
  std::unique_ptr<InFlight> in_flight_;
};

}  // namespace tenon::mesh
