// Session: runs a loaded ONNX model on values of any kind, one program per combination of shapes.
//
// Programs are kept up to a number of bytes, least recently used first out, so a shape that was seen before is neither imported
// nor compiled again. The weights are uploaded once and shared by all programs; they move to host memory before a device closes,
// and back. Thread safety: all calls may run concurrently.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lease/storage.h"
#include "model/onnx/import/importer.h"
#include "tenon/manager.h"

namespace tenon::onnx {

// A value outside of any import: what a caller passes and gets.
struct RunValue {
  Value::Kind kind = Value::Kind::tensor;
  ElementType type = ElementType::undefined;
  std::shared_ptr<Storage> tensor;  // null for strings and containers
  Shape shape;
  std::shared_ptr<const std::vector<std::string>> strings;
  std::vector<RunValue> items;

  static RunValue from(HostArray array, ElementType type = ElementType::undefined);
};

struct SessionResult {
  std::vector<RunValue> outputs;  // in the order of the model
  DeviceInfo device;
  Timeline timeline;
  int programs = 0;  // run; more than one where shapes depend on data
};

class Session {
 public:
  // |program_bytes|: how much the programs that are kept may take; one larger than this is not kept.
  Session(std::shared_ptr<LoadedModel> model, std::size_t program_bytes)
      : model_(std::move(model)),
        program_bytes_(program_bytes) {}

  SessionResult run(DeviceManager& manager, const std::map<std::string, RunValue, std::less<>>& inputs,
                    const RunOptions& options = {});
  // The program for these inputs, without running it; what can be known of it if shapes depend on data.
  std::shared_ptr<const Import> import(const std::map<std::string, RunValue, std::less<>>& inputs);

  LoadedModel& model() noexcept { return *model_; }
  std::size_t programs() const;

 private:
  struct Plan {
    std::shared_ptr<const Import> program;
    std::list<std::string>::iterator position;
    std::size_t bytes = 0;
    bool is_first = false;  // of its shapes: it depends on no data, so it is needed again
  };
  std::shared_ptr<const Import> plan(const std::string& key, const std::map<std::string, RunValue, std::less<>>& inputs,
                                     std::span<const HostArray> answers, const Checkpoint* from);
  using Storages = std::vector<std::shared_ptr<Storage>>;
  // What a program takes, in the order of |feeds|: weights of this model on |device|, and values of |given| and |fixed|.
  Storages feeds_of(std::span<const Feed> feeds, const std::string& device, const Storages& given, const Storages& fixed);
  // The results of the program of weights alone, computed when a device needs them for the first time.
  Storages fixed_of(DeviceManager& manager, const Import& program, const RunOptions& options);

  const std::shared_ptr<LoadedModel> model_;
  const std::size_t program_bytes_;
  mutable std::mutex mutex_;
  std::map<std::string, Plan> plans_;
  std::list<std::string> recent_;  // keys of plans_, least recently used first
  std::size_t plan_bytes_ = 0;     // of all
  // By the device request too: a value is on one device at a time, and two that run the model at once would pass it to and fro.
  std::map<std::string, std::map<int, std::shared_ptr<Storage>>, std::less<>> weights_;  // by device request and place
  std::map<std::pair<std::string, std::string>, Storages> fixed_;                        // by device request and program
};

}  // namespace tenon::onnx
