// Any bytes as a safetensors file: tensors that lie inside it, or a UserError.
#include "runtime/io/safetensors.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

using namespace sheaf;
using namespace sheaf::io;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  try {
    SafetensorsFile file = SafetensorsFile::parse({data, size}, "weights");
    size_t bytes = 0;
    std::vector<uint8_t> converted;
    for (const FileTensor &tensor : file.tensors()) {
      if (file.find(tensor.name) != &tensor)
        std::abort();
      bytes += tensor.data.size();
      for (rt::DType dtype : {rt::DType::F32, rt::DType::BF16, rt::DType::F16, rt::DType::I32,
                              rt::DType::I64, rt::DType::Bool})
        convertElements(tensor, dtype, converted);
    }
    if (bytes > size)
      std::abort();
  } catch (const UserError &) {
  }
  return 0;
}
