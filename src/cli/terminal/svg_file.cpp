#include "cli/terminal/svg_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "tenon/error.h"

namespace tenon::cli {

SvgFile::SvgFile(std::string path) : path_(std::move(path)) {
  if (path_.empty()) return;
  file_.open(path_, std::ios::binary);
  if (!file_)
    throw Error(errno == ENOENT ? ErrorCode::not_found : ErrorCode::permission_denied,
                fmt::format("cannot write {}: {}", path_, std::strerror(errno)));
}

void SvgFile::save(const Curve& curve) {
  if (!is_wanted()) return;
  if (!(file_ << plot_svg(curve) << std::flush))
    throw Error(ErrorCode::data_loss, fmt::format("cannot write {}", path_),
                "check the free space and permissions of its folder");
}

}  // namespace tenon::cli
