// x * y + v / 2 - 1
module @tenon {
  func.func public @main(%arg0: tensor<4x8xf32>, %arg1: tensor<4x8xf32>, %arg2: tensor<8xf32>) -> (tensor<4x8xf32>) {
    %3 = stablehlo.multiply %arg0, %arg1 : tensor<4x8xf32>
    %4 = stablehlo.constant dense<0x40000000> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %6 = stablehlo.divide %arg2, %5 : tensor<8xf32>
    %7 = stablehlo.broadcast_in_dim %6, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
    %8 = stablehlo.add %3, %7 : tensor<4x8xf32>
    %9 = stablehlo.constant dense<0x3F800000> : tensor<f32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %11 = stablehlo.subtract %8, %10 : tensor<4x8xf32>
    "func.return"(%11) : (tensor<4x8xf32>) -> ()
  }
}
