// What the tests can ask of the stand-in for NCCL (nccl_stand_in.cpp), besides the functions of NCCL itself.
#pragma once

extern "C" {
struct StandIn {
  int version;        // that ncclGetVersion() tells
  int communicators;  // that exist
  int aborted;        // that had calls under way
  int next_call;      // the result of the next call of a group; then success
  int next_state;     // the next asynchronous error; then success
};
StandIn* stand_in();
// Whether calls on the stream, a handle of the driver, are under way.
bool stand_in_is_busy(const void* stream);
}
