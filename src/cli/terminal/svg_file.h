// SvgFile: where a command saves its curve. Opened before anything is measured, so that a wrong name costs no time.
#pragma once

#include <fstream>
#include <string>

#include "cli/terminal/plot.h"

namespace tenon::cli {

class SvgFile {
 public:
  // "" for none: then nothing is written. Throws not_found or permission_denied with the reason.
  explicit SvgFile(std::string path);
  bool is_wanted() const noexcept { return !path_.empty(); }
  // Throws data_loss.
  void save(const Curve& curve);

 private:
  std::string path_;
  std::ofstream file_;
};

}  // namespace tenon::cli
