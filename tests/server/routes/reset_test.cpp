// /api/device/reset with the maker's tool: a program of its name in PATH that writes down how it was called.
#include <sys/stat.h>

#include <condition_variable>
#include <mutex>

#include "backends/cpu/backend.h"
#include "eventually.h"
#include "lease/turnstile/run_directory.h"
#include "lease/turnstile/turnstile.h"
#include "server/http_client.h"
#include "tenon/device/simulated.h"

namespace tenon::server {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;
using test::eventually;

// What happened to the card, in order; and a door that its computations wait at.
struct Story {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> lines;
  bool is_door_open = true;
  std::vector<int> holders;  // processes that have the card open, as a detector would see them

  void add(std::string line) {
    const std::lock_guard lock(mutex);
    lines.push_back(std::move(line));
    changed.notify_all();
  }
  void wait_for(const std::string& line) {
    std::unique_lock lock(mutex);
    EXPECT_TRUE(changed.wait_for(lock, 60s, [&] { return std::find(lines.begin(), lines.end(), line) != lines.end(); })) << line;
  }
  void open_door() {
    const std::lock_guard lock(mutex);
    is_door_open = true;
    changed.notify_all();
  }
  void pass_door() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return is_door_open; });
  }
};

class CardProgram final : public Executable {
 public:
  CardProgram(std::unique_ptr<Executable> program, Story& story) : program_(std::move(program)), story_(story) {}
  std::span<const TensorType> input_types() const noexcept override { return program_->input_types(); }
  std::span<const TensorType> output_types() const noexcept override { return program_->output_types(); }
  void run(std::span<const Buffer* const> inputs, std::span<Buffer* const> outputs) override {
    story_.add("run begins");
    story_.pass_door();
    program_->run(inputs, outputs);
    story_.add("run ends");
  }

 private:
  std::unique_ptr<Executable> program_;
  Story& story_;
};

class OpenCard final : public OpenDevice {
 public:
  OpenCard(DeviceInfo info, Story& story)
      : info_(std::move(info)),
        processor_backend_(cpu::make_backend()),
        processor_(processor_backend_->open(processor_backend_->devices().at(0))),
        story_(story) {}
  const DeviceInfo& info() const noexcept override { return info_; }
  std::unique_ptr<Executable> compile(const Graph& graph) override {
    return std::make_unique<CardProgram>(processor_->compile(graph), story_);
  }
  std::unique_ptr<Buffer> allocate(const TensorType& type) override { return processor_->allocate(type); }
  std::unique_ptr<Buffer> upload(const HostArray& array) override { return processor_->upload(array); }
  HostArray download(const Buffer& buffer) override { return processor_->download(buffer); }
  void close() override { story_.add("closed"); }

 private:
  DeviceInfo info_;
  std::unique_ptr<Backend> processor_backend_;
  std::unique_ptr<OpenDevice> processor_;
  Story& story_;
};

// A card of a maker, driven by a backend that is no simulation as far as anybody can see.
class CardBackend final : public Backend {
 public:
  CardBackend(DeviceInfo info, Story& story) : info_(std::move(info)), story_(story) { info_.backends = {"card"}; }
  std::string_view name() const noexcept override { return "card"; }
  std::vector<DeviceInfo> devices() override {
    const std::lock_guard lock(story_.mutex);
    info_.holders = story_.holders;
    return {info_};
  }
  using Backend::open;
  std::unique_ptr<OpenDevice> open(const DeviceInfo& device, const OpenOptions&) override {
    return std::make_unique<OpenCard>(device, story_);
  }

 private:
  DeviceInfo info_;
  Story& story_;
};

DeviceInfo tenstorrent_card() {
  DeviceInfo card;
  card.id = "tenstorrent:3";
  card.kind = DeviceKind::tenstorrent;
  card.name = "Wormhole n150";
  card.details["node"] = "/dev/tenstorrent/5";  // the number that the driver and tt-smi know
  card.vendor = "Tenstorrent";
  card.exclusive = true;
  return card;
}

DeviceInfo nvidia_card() {
  DeviceInfo card;
  card.id = "cuda:1";
  card.kind = DeviceKind::gpu;
  card.name = "A card";
  card.vendor = "NVIDIA";
  card.pci_address = "0000:65:00.0";
  return card;
}

class Reset : public ::testing::Test {
 protected:
  ~Reset() override {
    story_.open_door();  // whatever went wrong, the server must be able to end
    setenv("PATH", path_.c_str(), 1);
  }

  void start(const DeviceInfo& card) {
    id_ = card.id;
    server_ = std::make_unique<TestServer>();
    server_->manager().add_backend(std::make_unique<CardBackend>(card, story_));
  }
  // A tool that says what it was asked to do, in the file calls() reads, and ends with |status|.
  void install(const std::string& name, int status = 0) {
    const std::filesystem::path file = tools_.path() / name;
    std::ofstream(file) << "#!/bin/sh\necho \"" << name << " $*\" >>'" << (tools_.path() / "calls").string()
                        << "'\necho it is done\nexit " << status << '\n';
    chmod(file.c_str(), 0700);
    setenv("PATH", (tools_.path().string() + ":" + path_).c_str(), 1);
  }
  std::string calls() const {
    std::ifstream file(tools_.path() / "calls");
    return {std::istreambuf_iterator<char>(file), {}};
  }
  Reply ask() const { return server_->post("/api/device/reset", "{\"device\":\"" + id_ + "\"}"); }
  Reply confirm(const std::string& token) const {
    return server_->post("/api/device/reset", "{\"device\":\"" + id_ + "\",\"confirm\":\"" + token + "\"}");
  }
  Reply reset() const { return confirm(std::string(at(ask().json(), "confirm").as_string())); }
  Reply compute() const {
    return server_->post("/api/execute", R"({"operation":"neg","inputs":[{"value":4}],"device":")" + id_ + "\"}");
  }
  DeviceState state() const {
    for (const DeviceStatus& status : server_->manager().status())
      if (status.device.id == id_) return status.state;
    throw std::runtime_error("no device " + id_);
  }

  const std::string path_ = getenv("PATH");
  TestDirectory tools_;
  Story story_;
  std::string id_;
  std::unique_ptr<TestServer> server_;
};

TEST_F(Reset, AsksFirstAndTheAnswerWorksOnce) {
  install("tt-smi");
  start(tenstorrent_card());
  EXPECT_EQ(compute().status, 200);
  const json::value asked = ask().json();
  EXPECT_EQ(at(asked, "success"), false);
  EXPECT_EQ(at(asked, "confirmation_required"), true);
  EXPECT_EQ(calls(), "") << "nothing happens before it is confirmed";
  EXPECT_EQ(confirm("c_1").status, 409);
  const std::string token(at(asked, "confirm").as_string());
  EXPECT_EQ(server_->post("/api/device/reset", R"({"device":"cpu:0","confirm":")" + token + "\"}").status, 409)
      << "a token is for one device";
  EXPECT_EQ(confirm(token).status, 409) << "and was used up by the attempt";
  EXPECT_EQ(calls(), "");

  const std::string second(at(ask().json(), "confirm").as_string());
  const Reply done = confirm(second);
  EXPECT_EQ(done.status, 200) << done.body;
  EXPECT_EQ(at(done.json(), "success"), true);
  EXPECT_EQ(at(done.json(), "message"), "tenstorrent:3: reset with tt-smi");
  EXPECT_EQ(at(done.json(), "output"), "it is done\n");
  EXPECT_EQ(calls(), "tt-smi -r 5\n");
  EXPECT_EQ(state(), DeviceState::closed);
  EXPECT_EQ(confirm(second).status, 409);
  EXPECT_EQ(calls(), "tt-smi -r 5\n");
  EXPECT_EQ(compute().status, 200) << "it opens again by itself";
}

TEST_F(Reset, AsksTheMakersToolOfAnNvidiaCardByItsPlaceOnTheBus) {
  install("nvidia-smi");
  start(nvidia_card());
  EXPECT_EQ(reset().status, 200);
  EXPECT_NE(calls().find("nvidia-smi --gpu-reset -i 0000:65:00.0\n"), std::string::npos) << calls();
}

TEST_F(Reset, LetsWhatRunsEndAndClosesTheDeviceFirst) {
  install("tt-smi");
  start(tenstorrent_card());
  story_.is_door_open = false;
  Reply computed, done;
  std::jthread worker([&] { computed = compute(); });
  story_.wait_for("run begins");
  const std::string token(at(ask().json(), "confirm").as_string());
  std::jthread resetter([&] { done = confirm(token); });
  // The server says that it waits for the end of the run.
  EXPECT_TRUE(eventually(60s, [&] { return state() == DeviceState::draining; }));
  EXPECT_EQ(calls(), "");
  story_.open_door();
  worker.join();
  resetter.join();
  EXPECT_EQ(computed.status, 200) << computed.body;
  EXPECT_EQ(done.status, 200) << done.body;
  EXPECT_EQ(story_.lines, (std::vector<std::string>{"run begins", "run ends", "closed"}));
  EXPECT_EQ(calls(), "tt-smi -r 5\n");
}

TEST_F(Reset, NeverHappensUnderAnotherProcessThatHoldsTheDevice) {
  install("tt-smi");
  start(tenstorrent_card());
  // As another process would have it: a ticket is known by its file, not by who asks.
  const pid_t other = fork();
  if (other == 0) {
    Turnstile::Pass pass = Turnstile(RunDirectory::open(), "tenstorrent:3").enter({});
    std::ofstream(tools_.path() / "held") << "yes";
    for (;;) pause();
  }
  EXPECT_TRUE(eventually(60s, [&] { return std::filesystem::exists(tools_.path() / "held"); }));
  const Reply refused = ask();
  EXPECT_EQ(refused.status, 409) << refused.body;
  EXPECT_NE(refused.body.find("held by"), std::string::npos) << refused.body;
  EXPECT_EQ(calls(), "");
  kill(other, SIGKILL);
  waitpid(other, nullptr, 0);
  EXPECT_EQ(reset().status, 200);
  EXPECT_EQ(calls(), "tt-smi -r 5\n");
}

TEST_F(Reset, NeverHappensUnderAProgramThatHasTheDeviceOpenWithoutQueueing) {
  install("tt-smi");
  start(tenstorrent_card());
  story_.holders = {4242};
  const Reply refused = reset();
  EXPECT_EQ(refused.status, 409) << refused.body;
  EXPECT_NE(refused.body.find("is open in process 4242"), std::string::npos) << refused.body;
  EXPECT_EQ(calls(), "");
}

TEST_F(Reset, AToolThatFailsOrIsMissingIsSaidWithItsCommand) {
  start(tenstorrent_card());
  install("tt-smi", 1);
  const Reply failed = reset();
  EXPECT_EQ(failed.status, 503) << failed.body;
  EXPECT_NE(failed.body.find("run it manually: tt-smi -r 5"), std::string::npos) << failed.body;
  EXPECT_EQ(compute().status, 200) << "the device is not locked afterwards";
}

TEST_F(Reset, NeedsADevice) {
  start(tenstorrent_card());
  EXPECT_EQ(server_->post("/api/device/reset", "{}").status, 400);
  EXPECT_EQ(server_->post("/api/device/reset", R"({"device":""})").status, 400);
  EXPECT_EQ(server_->post("/api/device/reset", R"({"device":"tenstorrent:99"})").status, 404);
}

TEST_F(Reset, ASimulatedDeviceIsClosedAndHasNoTool) {
  install("tt-smi");
  Config config;
  config.simulated.push_back(parse_simulated("wormhole,id=sim:0,open=0,close=0"));
  id_ = "sim:0";
  server_ = std::make_unique<TestServer>(ServerOptions{}, config);
  EXPECT_EQ(compute().status, 200);
  const Reply done = reset();
  EXPECT_EQ(done.status, 200) << done.body;
  EXPECT_EQ(state(), DeviceState::closed);
  EXPECT_EQ(calls(), "");
}

}  // namespace
}  // namespace tenon::server
