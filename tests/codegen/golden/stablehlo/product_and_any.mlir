// prod(n), any(x > 0)
module @tenon {
  func.func public @main(%arg0: tensor<4x8xf32>, %arg1: tensor<4xi32>) -> (tensor<i64>, tensor<i1>) {
    %2 = stablehlo.convert %arg1 : (tensor<4xi32>) -> tensor<4xi64>
    %3 = stablehlo.constant dense<1> : tensor<i64>
    %4 = "stablehlo.reduce"(%2, %3) ({
    ^bb0(%a: tensor<i64>, %b: tensor<i64>):
      %c = stablehlo.multiply %a, %b : tensor<i64>
      "stablehlo.return"(%c) : (tensor<i64>) -> ()
    }) {dimensions = array<i64: 0>} : (tensor<4xi64>, tensor<i64>) -> tensor<i64>
    %5 = stablehlo.reshape %4 : (tensor<i64>) -> tensor<1xi64>
    %6 = stablehlo.reshape %5 : (tensor<1xi64>) -> tensor<i64>
    %7 = stablehlo.constant dense<0x00000000> : tensor<f32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %9 = stablehlo.compare GT, %arg0, %8, FLOAT : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
    %10 = stablehlo.constant dense<false> : tensor<i1>
    %11 = "stablehlo.reduce"(%9, %10) ({
    ^bb0(%a: tensor<i1>, %b: tensor<i1>):
      %c = stablehlo.or %a, %b : tensor<i1>
      "stablehlo.return"(%c) : (tensor<i1>) -> ()
    }) {dimensions = array<i64: 0, 1>} : (tensor<4x8xi1>, tensor<i1>) -> tensor<i1>
    %12 = stablehlo.reshape %11 : (tensor<i1>) -> tensor<1x1xi1>
    %13 = stablehlo.reshape %12 : (tensor<1x1xi1>) -> tensor<i1>
    "func.return"(%6, %13) : (tensor<i64>, tensor<i1>) -> ()
  }
}
