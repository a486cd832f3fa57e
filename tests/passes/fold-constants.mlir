// RUN: sheaf-opt --fold-constants=remarks=1 %s 2>&1 | FileCheck %s
// RUN: sheaf-opt --fold-constants=without=fold-constants %s | FileCheck %s --check-prefix=OFF

// CHECK: remark: full is the constant constant_4
// CHECK-DAG: sheaf.param @constant_4 : tensor<4xf32> init("constant", [0.000000e+00]) {sheaf.synthetic}
// CHECK-DAG: sheaf.param @constant_4_0 : tensor<4xf32> init("constant", [1.000000e+00]) {sheaf.synthetic}
// OFF-NOT: sheaf.synthetic

// CHECK-LABEL: func.func @main
// CHECK: %[[Z:.*]] = sheaf.param_ref @constant_4 :
// CHECK: sheaf.fold %[[Z]]
// The kernel makes its own constant.
// CHECK: %[[F:.*]] = sheaf.apply "full"() {value = 0.000000e+00 : f64}
// CHECK: sheaf.apply "add"(%{{.*}}, %[[F]])
// CHECK: %[[O:.*]] = sheaf.param_ref @constant_4_0
// CHECK: return %{{.*}}, %[[O]]
func.func @main(%xs: !sheaf.list<tensor<4xf32>>) -> (tensor<4xf32>, tensor<4xf32>) {
  %z = sheaf.apply "full"() {value = 0.0 : f64} : () -> tensor<4xf32>
  %r = sheaf.fold %z, %xs : (tensor<4xf32>, !sheaf.list<tensor<4xf32>>) -> tensor<4xf32> {
  ^bb0(%acc: tensor<4xf32>, %x: tensor<4xf32>):
    %s = sheaf.apply "add"(%acc, %x) {} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    sheaf.yield %s : tensor<4xf32>
  }
  %f = sheaf.apply "full"() {value = 0.0 : f64} : () -> tensor<4xf32>
  %t = sheaf.apply "add"(%r, %f) {} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %o = sheaf.apply "full"() {value = 1.0 : f64} : () -> tensor<4xf32>
  return %t, %o : tensor<4xf32>, tensor<4xf32>
}
