#include "hal/worker/parent/spare_worker.h"

#include "base/log.h"

namespace tenon {

SpareWorker::~SpareWorker() {
  if (connection_) connection_->discard();
}

void SpareWorker::start() noexcept {
  const std::lock_guard lock(mutex_);
  if (connection_) return;
  try {
    auto connection = std::make_shared<WorkerConnection>(backend_, WorkerOptions());
    ByteWriter note = request_for(WorkerCommand::preload);
    note.text(backend_);
    connection->notify(note);
    connection_ = std::move(connection);
  } catch (const std::exception& error) {
    logging::debug("no worker is held ready for {}: {}", backend_, error.what());
  }
}

std::shared_ptr<WorkerConnection> SpareWorker::take() {
  const std::lock_guard lock(mutex_);
  if (connection_ && !connection_->is_alive()) connection_.reset();
  return std::exchange(connection_, nullptr);
}

}  // namespace tenon
