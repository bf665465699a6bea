// The elements of an ONNX tensor as an array of Tenon.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "model/onnx/proto/model_proto.h"
#include "tenon/array.h"

namespace tenon::onnx {

// Reads tensors that a model keeps in files of their own. Such a file must be a regular file in the folder of the model, without
// symbolic or hard links on the way, because a model may come from strangers and must not read other files of its user.
class ExternalData {
 public:
  ExternalData() = default;  // none: models that arrive as bytes have no folder
  explicit ExternalData(std::filesystem::path folder);
  // Throws invalid_argument, not_found, permission_denied, and failed_precondition if there is no folder.
  std::vector<std::byte> read(const TensorProto& tensor, std::size_t bytes) const;

 private:
  std::filesystem::path folder_;
};

// The shape of |tensor|. Throws invalid_argument for negative or too many dims.
Shape shape_of(const TensorProto& tensor);

// The elements; small types are unpacked and held as held_as() says. Throws invalid_argument if the number of elements does not
// match the dims, unimplemented for complex numbers and strings.
HostArray array_of(const TensorProto& tensor, const ExternalData& external);

}  // namespace tenon::onnx
