// Several threads share a device that has one user at a time: each evaluation waits in the queue, and none starves.
#include <iostream>
#include <thread>
#include <vector>

#include "tenon/tenon.h"

using namespace tenon;

int main() {
  Config config;
  config.simulated.push_back(parse_simulated("wormhole,open=20ms,close=20ms"));
  config.keep_open = KeepOpenPolicy::always;
  config.ledger = false;
  DeviceManager manager(config);

  const Tensor shared = (arange(1000) % 7).on("sim:0");  // computed once, by the first thread
  std::vector<std::int64_t> sums(4);
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < sums.size(); ++i)
    threads.emplace_back([&, i] {
      const UseManager use(manager);
      shared.eval();
      sums[i] = sum(shared * (i + 1)).item<std::int64_t>();
    });
  threads.clear();  // joins

  for (std::size_t i = 0; i < sums.size(); ++i) std::cout << "thread " << i << ": " << sums[i] << '\n';
  for (const DeviceStatus& status : manager.status())
    if (status.device.id == "sim:0") std::cout << status.counters.opens << " opening, " << status.counters.runs << " programs\n";
}
