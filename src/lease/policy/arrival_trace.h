// ArrivalTrace: when work came and how long it took, read from a CSV file.
//
// The first line names the columns. Arrivals come from TIMESTAMP (2023-11-16 18:17:03.9799600, with T between date and time and
// an offset such as Z or +02:00 if wanted; or plain seconds) or arrival_seconds; service times from service_seconds, else
// |default_service_seconds|. Other columns are left alone. Lines may end with CR LF and the last one without any; fields may be
// quoted. Rows need not be in order.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace tenon {

struct Arrival {
  double seconds = 0;  // since the first arrival
  double service_seconds = 0;
};

inline constexpr double kDefaultServiceSeconds = 0.02;

// In order of time. Throws invalid_argument naming the line of a row that cannot be read.
std::vector<Arrival> parse_arrivals(std::string_view csv, double default_service_seconds = kDefaultServiceSeconds);
// The same for a file; not_found or permission_denied when it cannot be read. The file's name is in the message of every error.
std::vector<Arrival> load_arrivals(const std::filesystem::path& file, double default_service_seconds = kDefaultServiceSeconds);

}  // namespace tenon
