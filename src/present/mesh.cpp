#include "present/mesh.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "present/run.h"
#include "present/tensor/tensor.h"

namespace tenon::present {
namespace {

double total(const Timeline& timeline) {
  return std::accumulate(timeline.begin(), timeline.end(), 0.0, [](double sum, const Span& span) { return sum + span.seconds; });
}

std::uint64_t total(const std::vector<Collective>& collectives) {
  std::uint64_t bytes = 0;
  for (const Collective& collective : collectives) bytes += collective.bytes;
  return bytes;
}

void write_collectives(JsonWriter& json, const std::vector<Collective>& collectives) {
  json.key("collectives").begin_array();
  for (const Collective& collective : collectives) {
    json.begin_object();
    json.member("kind", name(collective.kind));
    json.member("value", collective.value);
    write_type(json, collective.dtype, collective.shape);
    json.member("from", collective.from);
    json.member("to", collective.to);
    json.list("axes", collective.axes);
    json.member("bytes", collective.bytes);
    if (!collective.through.empty()) json.member("through", collective.through);
    json.end_object();
  }
  json.end_array();
  json.member("bytes", total(collectives));
}

void write_shardings(JsonWriter& json, const MeshPlan& plan) {
  json.key("shardings").begin_array();
  for (const MeshPlan::Value& value : plan.values) {
    json.begin_object();
    json.member("node", std::int64_t{value.node});
    json.member("sharding", value.sharding);
    json.member("text", value.description);
    json.end_object();
  }
  json.end_array();
  json.list("outputs", plan.outputs);
  json.list("notes", plan.notes);
  json.key("shares").begin_array();
  for (const double share : plan.shares) json.value(share);
  json.end_array();
}

}  // namespace

RunResult as_run(const MeshResult& result) {
  RunResult run;
  run.outputs = result.outputs;
  run.device = std::make_shared<const DeviceInfo>(result.devices.at(0));
  run.timeline = *std::max_element(result.timelines.begin(), result.timelines.end(),
                                   [](const Timeline& a, const Timeline& b) { return total(a) < total(b); });
  return run;
}

void write_mesh(JsonWriter& json, const MeshRun& run) {
  json.begin_object();
  json.member("axes", run.axes);
  json.list("devices", run.devices);
  write_collectives(json, run.result.collectives);
  json.key("timelines").begin_array();
  for (const Timeline& timeline : run.result.timelines) write_timeline(json, timeline);
  json.end_array();
  if (run.plan) write_shardings(json, *run.plan);
  json.end_object();
}

void write_mesh_plan(JsonWriter& json, const Mesh& mesh, const MeshPlan& plan) {
  json.begin_object();
  json.member("axes", mesh.text());
  json.list("devices", mesh.devices());
  write_collectives(json, plan.collectives);
  write_shardings(json, plan);
  json.end_object();
}

std::string mesh_text(const MeshRun& run) {
  const std::vector<Collective>& collectives = run.result.collectives;
  const std::string exchanged = collectives.empty()
                                    ? "nothing exchanged"
                                    : fmt::format("{} {}, {} bytes", collectives.size(),
                                                  collectives.size() == 1 ? "exchange" : "exchanges", total(collectives));
  return fmt::format("on {}; {}", fmt::join(run.devices, ", "), exchanged);
}

}  // namespace tenon::present
