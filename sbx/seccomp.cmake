# Builds the seccomp programs of efr-sbx into a header, once for all variants of efrsbx.
add_executable(efr-seccomp-gen sbx/gen/seccomp_gen.c)
target_link_libraries(efr-seccomp-gen PRIVATE efr_flags PkgConfig::SECCOMP)
set_target_properties(efr-seccomp-gen PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/gen")
set(EFR_SECCOMP_DIR "${CMAKE_BINARY_DIR}/gen/sbx")
file(MAKE_DIRECTORY "${EFR_SECCOMP_DIR}")
add_custom_command(OUTPUT "${EFR_SECCOMP_DIR}/seccomp_programs.h"
  COMMAND efr-seccomp-gen > "${EFR_SECCOMP_DIR}/seccomp_programs.h"
  DEPENDS efr-seccomp-gen VERBATIM)
add_custom_target(efr-seccomp-header DEPENDS "${EFR_SECCOMP_DIR}/seccomp_programs.h")
foreach(archive efrsbx efrsbx_san)
  if(TARGET ${archive})
    add_dependencies(${archive} efr-seccomp-header)
    target_include_directories(${archive} PRIVATE "${EFR_SECCOMP_DIR}")
  endif()
endforeach()
