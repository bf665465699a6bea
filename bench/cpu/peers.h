// Peers: NumPy, numexpr and PyTorch in one child process (peers.py), asked for one measurement at a time, so that they take their
// turn in every round.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace bench {

class Peers {
 public:
  // Starts |python| |script|. Without it, or when it fails to start, there are no peers and missing() says why.
  Peers(const std::string& python, const std::string& script, int threads);
  ~Peers();
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  const std::vector<std::string>& names() const { return names_; }  // "numpy", ...
  const std::string& versions() const { return versions_; }         // "numpy 1.24.2, ..."
  const std::string& missing() const { return missing_; }           // "torch (not installed)"; empty when all are there

  // Seconds of the fastest of |calls| calls after one uncounted; negative when the peer has no such op.
  double measure(const std::string& peer, const std::string& op, std::int64_t size, int calls);

 private:
  std::string read_line();

  int pid_ = -1;
  std::FILE* to_ = nullptr;
  std::FILE* from_ = nullptr;
  std::vector<std::string> names_;
  std::string versions_;
  std::string missing_;
};

}  // namespace bench
