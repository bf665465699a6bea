// A queue file that others may write to: what they lock in it does not hurt those who look.
#include "lease/turnstile/ticket_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "temporary_folder.h"

namespace tenon {
namespace {

constexpr std::int64_t kExclusiveBytes = std::int64_t{1} << 61;

FileDescriptor open_queue(const std::string& path) {
  return FileDescriptor(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
}

FileDescriptor hold(const std::string& path, std::int64_t start, std::int64_t length) {
  FileDescriptor file = open_queue(path);
  struct flock request{};
  request.l_type = F_WRLCK;
  request.l_whence = SEEK_SET;
  request.l_start = start;
  request.l_len = length;
  EXPECT_EQ(fcntl(file.get(), F_OFD_SETLK, &request), 0);
  return file;
}

TEST(TicketFile, ClaimsOfOneByteAreListedInOrder) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "queue";
  const FileDescriptor c = hold(path, kExclusiveBytes + 9, 1), a = hold(path, kExclusiveBytes + 3, 1),
                       b = hold(path, kExclusiveBytes + 4, 1);
  EXPECT_EQ(TicketFile(open_queue(path)).claimed(TicketKind::exclusive), (std::vector<TicketNumber>{3, 4, 9}));
  EXPECT_EQ(TicketFile(open_queue(path)).claimed(TicketKind::exclusive, 4), (std::vector<TicketNumber>{4, 9}));
}

TEST(TicketFile, ALockOverATrillionTicketsCountsAsOne) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "queue";
  const FileDescriptor hostile = hold(path, kExclusiveBytes + 5, std::int64_t{1} << 40),
                       honest = hold(path, kExclusiveBytes + 2, 1);
  EXPECT_EQ(TicketFile(open_queue(path)).claimed(TicketKind::exclusive), (std::vector<TicketNumber>{2, 5}));
  const FileDescriptor rest = hold(path, kExclusiveBytes + (std::int64_t{1} << 41), 0);
  EXPECT_EQ(TicketFile(open_queue(path)).claimed(TicketKind::exclusive).size(), 3u) << "a lock to the end of everything";
  EXPECT_EQ(TicketFile(open_queue(path)).claimed(TicketKind::shared), (std::vector<TicketNumber>{0}));
}

}  // namespace
}  // namespace tenon
