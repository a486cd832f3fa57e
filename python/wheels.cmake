# Wheels of what another build directory has, SHEAF_BUILT (build_wheels.sh).
file(GLOB extension ${SHEAF_BUILT}/python/sheaf/_native.${SKBUILD_SOABI}.so)
install(FILES ${extension} DESTINATION sheaf COMPONENT python)
install(FILES ${SHEAF_BUILT}/lib/libsheaf_compiler.so.${PROJECT_VERSION} DESTINATION sheaf_compiler
        RENAME libsheaf_compiler.so COMPONENT python_compiler)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/lib DESTINATION sheaf_compiler/share/sheaf
        COMPONENT python_compiler)
add_custom_target(sheaf_python)
add_custom_target(sheaf_compiler)
