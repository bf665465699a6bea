// What the text of a kernel that was compiled for this machine asks of who runs its work-items (cuda_on_cpu.h, block.h). Plain
// data and functions: the text is in a library of its own.
#pragma once

namespace tenon::emulated {

struct Runner {
  // Of the work-item that runs now.
  unsigned thread[3], block[3], threads[3], blocks[3];
  int lane, lanes;  // its place in its warp, and how many that has
  void* dynamic;    // local memory that the launch provides
  // |line|: of the text; those that meet must be at the same one.
  void (*barrier)(int line);
  // Every lane of the warp brings a value, and gets those of all.
  const unsigned long long* (*exchange)(unsigned long long mine, int line);
  // Every work-item of the block passes before any sees what earlier kernels computed.
  void (*wait_for_last)();
};

}  // namespace tenon::emulated
