#include "model/generate/text_stream.h"

#include <algorithm>

namespace tenon {
namespace {

constexpr std::size_t kContext = 5;  // tokens before, which decoders look at

// Ends with bytes of a character that is not complete, which decoders show as U+FFFD.
bool is_cut(std::string_view text) { return text.ends_with("\xef\xbf\xbd"); }

}  // namespace

TextStream::TextStream(Tokenizer tokenizer, std::vector<std::string> stop, std::span<const std::int32_t> prompt)
    : tokenizer_(std::move(tokenizer)),
      stop_(std::move(stop)) {
  const std::size_t first = prompt.size() > kContext ? prompt.size() - kContext : 0;
  ids_.assign(prompt.begin() + static_cast<std::ptrdiff_t>(first), prompt.end());
  known_ = ids_.size();
}

std::string TextStream::add(std::int32_t id) {
  if (is_stopped_) return {};
  ids_.push_back(id);
  const std::string before = tokenizer_.decode(std::span(ids_).first(known_)), now = tokenizer_.decode(ids_);
  // A character of at most four bytes; something longer is not text, and shown as it is.
  if (now.size() <= before.size() || (is_cut(now) && ids_.size() - known_ < 4)) return {};
  held_ += now.substr(before.size());
  ids_.erase(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(std::max(known_, std::size_t{0})));
  known_ = ids_.size();
  return release(false);
}

std::string TextStream::finish() {
  if (!is_stopped_ && ids_.size() > known_) {
    const std::string before = tokenizer_.decode(std::span(ids_).first(known_)), now = tokenizer_.decode(ids_);
    if (now.size() > before.size()) held_ += now.substr(before.size());
    known_ = ids_.size();
  }
  return release(true);
}

std::string TextStream::release(bool all) {
  std::size_t end = std::string::npos, keep = 0;
  for (const std::string& stop : stop_) {
    end = std::min(end, held_.find(stop));
    if (all) continue;
    for (std::size_t n = std::min(stop.size() - 1, held_.size()); n > keep; --n)
      if (std::string_view(held_).ends_with(std::string_view(stop).substr(0, n))) keep = n;
  }
  std::string out;
  if (end != std::string::npos) {
    is_stopped_ = true;
    out = held_.substr(0, end);
    held_.clear();
  } else {
    out = held_.substr(0, held_.size() - keep);
    held_.erase(0, out.size());
  }
  return out;
}

}  // namespace tenon
