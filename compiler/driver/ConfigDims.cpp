#include "compiler/driver/ConfigDims.h"

#include "compiler/frontend/Parser.h"

namespace sheaf::driver {

void bindConfigDims(const SourceFile &source, const io::ModelConfig &config,
                    CompileOptions &options) {
  if (source.name().ends_with(".mlir"))
    return;
  Diagnostics unheard(source);
  Module module = parseModule(source, unheard);
  if (unheard.hasErrors())
    return;
  for (size_t file = 0; file < module.fileCount(); ++file)
    for (const Decl *decl : module.declsOf(file))
      if (const auto *dim = decl->as<DimDecl>(); dim && !options.dims.contains(dim->name.name))
        for (const DimDecl::Member &member : dim->config)
          if (std::optional<int64_t> value = config.size(member.name)) {
            options.dims.emplace(dim->name.name, *value);
            break;
          }
}

} // namespace sheaf::driver
